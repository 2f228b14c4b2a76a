//! Sort and top-k.

mod eval;
mod proto;
mod shape;
mod sharding;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, ElementType, Error, Literal, Result, Scalar, Shape};

/// `sort`: sorts N arrays of equal dimensions together along one dimension. Returns the arrays, in a tuple if N > 1.
///
/// The comparator takes `(a_0, b_0, ..., a_N-1, b_N-1)`, the elements at two positions, and returns whether position
/// `a` precedes position `b`. Sorting is always stable here, even if `is_stable` is false. If the comparator is not a
/// strict weak order, the result is some permutation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The dimension along which rows are sorted.
    pub dimension: usize,
    /// Whether the program relies on equivalent elements keeping their order.
    pub is_stable: bool,
    /// Comparator of the elements at two positions.
    pub computation: CompId,
}

impl ReadAttributes for Sort {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let dimension = match r.required::<Vec<usize>>("dimensions")?[..] {
            [d] => d,
            _ => return Err(Error::invalid_argument("attribute dimensions must name exactly one dimension")),
        };
        Ok(Sort {
            dimension,
            is_stable: r.optional("is_stable")?.unwrap_or(false),
            computation: r.required("to_apply")?,
        })
    }
}

impl OpRules for Sort {
    fn opcode(&self) -> Opcode {
        Opcode::Sort
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::sort(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &vec![self.dimension]);
        if self.is_stable {
            w.attribute("is_stable", &true);
        }
        w.attribute("to_apply", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::sort(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}

/// `topk`: the `k` greatest or least elements of each row along the last dimension, best first, as
/// `(values, s32 indices)`.
///
/// Integers are compared by value, floats by bit pattern (IEEE's total order: -NaN < -inf < -0 < 0 < inf < NaN). Among
/// equal elements, lower indices come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// Number of selected elements of each row.
    pub k: usize,
    /// Whether to select the greatest instead of the least elements.
    pub largest: bool,
    /// Whether the program asks for a stable order, which newer programs do. The order is stable in any case.
    pub is_stable: bool,
}

impl ReadAttributes for TopK {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(TopK {
            k: r.required("k")?,
            largest: r.optional("largest")?.unwrap_or(true),
            is_stable: r.optional("is_stable")?.unwrap_or(false),
        })
    }
}

impl OpRules for TopK {
    fn opcode(&self) -> Opcode {
        Opcode::TopK
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::top_k(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("k", &self.k);
        w.attribute("largest", &self.largest);
        if self.is_stable {
            w.attribute("is_stable", &true);
        }
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::top_k(self, operands, shape)
    }
}

/// Returns an integer key with the element order of [`TopK`]; `None` for complex numbers, which have no order.
pub(super) fn order_key(ty: ElementType, x: Scalar) -> Option<i128> {
    match x {
        Scalar::Pred(p) => Some(i128::from(p)),
        Scalar::Signed(v) => Some(i128::from(v)),
        Scalar::Unsigned(v) => Some(i128::from(v)),
        Scalar::Float(_) => Some(i128::from(super::elementwise::total_order_key(ty, x))),
        Scalar::Complex(..) => None,
    }
}
