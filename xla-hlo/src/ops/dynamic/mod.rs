//! Dynamic array sizes.
//!
//! A dimension of shape `f32[<=8]` has a static bound and a dynamic size. Values in the evaluator have their actual
//! sizes, so every operation respects them. Compilers compute on arrays at the bounds and ignore elements past the
//! sizes.

mod eval;
mod proto;
mod shape;
mod sharding;
pub(crate) mod sizes;

use super::checks::ensure;
use super::{Op, OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ArrayShape, Computation, Dynamism, Error, InstrId, Literal, Result, Shape};

/// An operation on dynamic sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dynamic {
    /// `get-dimension-size`: the size of a dimension, `s32[]`.
    GetDimensionSize {
        /// Index of the dimension.
        dimension: usize,
    },
    /// `set-dimension-size`: operand 0 with the size of a dimension changed to operand 1. Elements past the new size
    /// are removed, and new elements are undefined. The size is clamped to `0..=bound`.
    SetDimensionSize {
        /// Index of the dimension.
        dimension: usize,
    },
    /// `dynamic-reshape`: reshapes operand 0 in row-major order to the sizes in the other operands, one `s32[]` for
    /// each dimension of the result. The number of elements must not change.
    DynamicReshape,
}

impl Dynamic {
    /// Checks that the written result of `set-dimension-size` is dynamic in its dimension. It may be static if the size
    /// is a constant equal to the bound.
    pub(crate) fn check_written(&self, computation: &Computation, id: InstrId) -> Result<()> {
        let Dynamic::SetDimensionSize { dimension } = *self else { return Ok(()) };
        let result = computation[id].shape().expect_array()?;
        let Op::Constant(size) = computation[computation[id].operand(1)].op() else {
            return dynamic_or(result, dimension, false);
        };
        dynamic_or(result, dimension, size.literal.get(0).as_i128() == Some(result.dims()[dimension] as i128))
    }
}

fn dynamic_or(result: &ArrayShape, dimension: usize, is_whole: bool) -> Result<()> {
    let bound = result.dims()[dimension];
    ensure!(
        is_whole || result.dynamism(dimension) != Dynamism::Static,
        "set-dimension-size makes dimension {dimension} of {result} dynamic: write <={bound} for it, or let the size be the \
         constant {bound}"
    );
    Ok(())
}

impl ReadAttributes for Dynamic {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let dimension = |r: &mut AttributeReader<'_>| match r.required::<Vec<usize>>("dimensions")?[..] {
            [dimension] => Ok(dimension),
            ref several => {
                Err(Error::invalid_argument(format!("dimensions must have one element, it has {}", several.len())))
            }
        };
        match opcode {
            Opcode::GetDimensionSize => Ok(Dynamic::GetDimensionSize { dimension: dimension(r)? }),
            Opcode::SetDimensionSize => Ok(Dynamic::SetDimensionSize { dimension: dimension(r)? }),
            Opcode::DynamicReshape => Ok(Dynamic::DynamicReshape),
            other => Err(Error::internal(format!("{other} does not read or set sizes"))),
        }
    }
}

impl OpRules for Dynamic {
    fn opcode(&self) -> Opcode {
        match self {
            Dynamic::GetDimensionSize { .. } => Opcode::GetDimensionSize,
            Dynamic::SetDimensionSize { .. } => Opcode::SetDimensionSize,
            Dynamic::DynamicReshape => Opcode::DynamicReshape,
        }
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::infer(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        match self {
            Dynamic::GetDimensionSize { dimension } | Dynamic::SetDimensionSize { dimension } => {
                w.attribute("dimensions", &vec![*dimension]);
            }
            Dynamic::DynamicReshape => {}
        }
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::evaluate(self, &operands, shape)
    }
}
