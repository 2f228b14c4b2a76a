//! Data movement: operations that rearrange elements without changing them.

mod attributes;
mod eval;
mod proto;
mod reshape_factors;
mod shape;
mod sharding;
pub(super) mod strided;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// `broadcast`: operand dimension `i` becomes result dimension `dimensions[i]`; the operand is repeated along all other
/// dimensions of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Result dimension of each operand dimension.
    pub dimensions: Vec<usize>,
}

impl ReadAttributes for Broadcast {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Broadcast { dimensions: r.optional("dimensions")?.unwrap_or_default() })
    }
}

impl OpRules for Broadcast {
    fn opcode(&self) -> Opcode {
        Opcode::Broadcast
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::broadcast(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &self.dimensions);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::broadcast(self, ev, operands, shape)
    }
}

/// `reshape`: changes the dimensions and keeps the row-major order of elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The dimension whose size the framework left to be inferred.
    pub inferred_dimension: Option<usize>,
}

impl ReadAttributes for Reshape {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Reshape { inferred_dimension: r.optional("inferred_dimension")? })
    }
}

impl OpRules for Reshape {
    fn opcode(&self) -> Opcode {
        Opcode::Reshape
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::reshape(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        if let Some(d) = &self.inferred_dimension {
            w.attribute("inferred_dimension", d);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::reshape(self, ev, operands, shape)
    }
}

/// `transpose`: result dimension `i` is operand dimension `permutation[i]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// Operand dimensions in the order of the result.
    pub permutation: Vec<usize>,
}

impl ReadAttributes for Transpose {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Transpose { permutation: r.required("dimensions")? })
    }
}

impl OpRules for Transpose {
    fn opcode(&self) -> Opcode {
        Opcode::Transpose
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::transpose(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &self.permutation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::transpose(self, ev, operands, shape)
    }
}

/// Range `[start:limit:stride]` of one dimension; `limit` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceRange {
    /// First index.
    pub start: usize,
    /// Exclusive upper bound of the indices.
    pub limit: usize,
    /// Step between indices, at least 1.
    pub stride: usize,
}

/// `slice`: a strided slice of the operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Range of each dimension.
    pub ranges: Vec<SliceRange>,
}

impl ReadAttributes for Slice {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Slice { ranges: r.required("slice")? })
    }
}

impl OpRules for Slice {
    fn opcode(&self) -> Opcode {
        Opcode::Slice
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::slice(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("slice", &self.ranges);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::slice(self, ev, operands, shape)
    }
}

/// Padding of one dimension. Negative `low` and `high` remove elements after `interior` padding is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PadDim {
    /// Number of elements added before the first; negative values remove elements.
    pub low: i64,
    /// Number of elements added after the last; negative values remove elements.
    pub high: i64,
    /// Number of elements added between neighbouring elements of the operand.
    pub interior: usize,
}

/// `pad`: adds operand 1, a scalar, around and between the elements of operand 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// Padding of each dimension.
    pub dims: Vec<PadDim>,
}

impl ReadAttributes for Pad {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Pad { dims: r.required("padding")? })
    }
}

impl OpRules for Pad {
    fn opcode(&self) -> Opcode {
        Opcode::Pad
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::pad(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("padding", &self.dims);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::pad(self, ev, operands, shape)
    }
}

/// `concatenate`: concatenates the operands along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concatenate {
    /// Dimension along which the operands are concatenated.
    pub dimension: usize,
}

impl ReadAttributes for Concatenate {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Concatenate { dimension: single_dimension(r)? })
    }
}

impl OpRules for Concatenate {
    fn opcode(&self) -> Opcode {
        Opcode::Concatenate
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::concatenate(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &vec![self.dimension]);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::concatenate(self, ev, operands, shape)
    }
}

/// `reverse`: reverses the order of elements along some dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// Dimensions to reverse.
    pub dimensions: Vec<usize>,
}

impl ReadAttributes for Reverse {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Reverse { dimensions: r.required("dimensions")? })
    }
}

impl OpRules for Reverse {
    fn opcode(&self) -> Opcode {
        Opcode::Reverse
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::reverse(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &self.dimensions);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::reverse(self, ev, operands, shape)
    }
}

/// `iota`: each element is its index along one dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iota {
    /// The dimension whose index is the value.
    pub dimension: usize,
}

impl ReadAttributes for Iota {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Iota { dimension: r.required("iota_dimension")? })
    }
}

impl OpRules for Iota {
    fn opcode(&self) -> Opcode {
        Opcode::Iota
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::iota(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("iota_dimension", &self.dimension);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::iota(self, ev, operands, shape)
    }
}

/// `dynamic-slice`: a slice of operand 0. The other operands are its start indices: scalars, or one vector. They are
/// clamped so that the slice fits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicSlice {
    /// Size of the slice along each dimension.
    pub sizes: Vec<usize>,
}

impl ReadAttributes for DynamicSlice {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(DynamicSlice { sizes: r.required("dynamic_slice_sizes")? })
    }
}

impl OpRules for DynamicSlice {
    fn opcode(&self) -> Opcode {
        Opcode::DynamicSlice
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::dynamic_slice(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dynamic_slice_sizes", &self.sizes);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::dynamic_slice(self, ev, operands, shape)
    }
}

/// `dynamic-update-slice`: operand 0 with a slice replaced by operand 1. The other operands are the start indices:
/// scalars, or one vector. They are clamped so that the slice fits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicUpdateSlice;

impl ReadAttributes for DynamicUpdateSlice {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(DynamicUpdateSlice)
    }
}

impl OpRules for DynamicUpdateSlice {
    fn opcode(&self) -> Opcode {
        Opcode::DynamicUpdateSlice
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::dynamic_update_slice(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::dynamic_update_slice(self, ev, operands, shape)
    }
}

/// `copy`: copies a value into another buffer, possibly with another layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Copy;

impl ReadAttributes for Copy {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Copy)
    }
}

impl OpRules for Copy {
    fn opcode(&self) -> Opcode {
        Opcode::Copy
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::copy(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::copy(self, ev, operands, shape)
    }
}

/// `bitcast`: reinterprets the bytes of the operand, in the memory order of its layout, as an array of another shape
/// and layout.
///
/// Tiling, dimension order and packing of both layouts matter. Both arrays take the same number of bits, either with or
/// without their padding. If padding of the operand becomes an element of the result, its value is zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bitcast;

impl ReadAttributes for Bitcast {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Bitcast)
    }
}

impl OpRules for Bitcast {
    fn opcode(&self) -> Opcode {
        Opcode::Bitcast
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::bitcast(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::bitcast(self, ev, operands, shape)
    }
}

/// Reads `dimensions={d}`, which must name exactly one dimension.
fn single_dimension(r: &mut AttributeReader<'_>) -> Result<usize> {
    match r.required::<Vec<usize>>("dimensions")?[..] {
        [d] => Ok(d),
        _ => Err(Error::invalid_argument("attribute dimensions must name exactly one dimension")),
    }
}
