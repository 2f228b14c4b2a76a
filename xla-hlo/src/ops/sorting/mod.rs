//! Sort and top-k.

mod eval;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, ElementType, Error, Literal, Result, Scalar, Shape};

/// N arrays of equal dimensions, sorted together along one of them; returns the arrays, in a tuple when N > 1.
///
/// The comparator takes `(a_0, b_0, ..., a_N-1, b_N-1)`, the elements at two places, and says whether place `a` comes
/// before place `b`. Sorting is always stable here, whatever `is_stable` says. If the comparator is no strict weak
/// order, the result is some permutation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The dimension that is sorted along.
    pub dimension: usize,
    /// Whether the program relies on elements keeping their order where neither comes before the other.
    pub is_stable: bool,
    /// The comparator.
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

/// The `k` greatest or least elements of each row along the last dimension, best first, as `(values, s32 places)`.
///
/// The order is that of integers and, for floats, of their patterns (IEEE's total order: -NaN < -inf < -0 < 0 < inf <
/// NaN). Of equal elements the one with the lower place comes first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// Number of elements of each row.
    pub k: usize,
    /// The greatest rather than the least.
    pub largest: bool,
    /// Written by newer programs; the order is stable in any case.
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

/// An integer whose order is the order in which [`TopK`] compares elements; `None` for complex numbers, which have
/// none.
pub(super) fn order_key(ty: ElementType, x: Scalar) -> Option<i128> {
    match x {
        Scalar::Pred(p) => Some(i128::from(p)),
        Scalar::Signed(v) => Some(i128::from(v)),
        Scalar::Unsigned(v) => Some(i128::from(v)),
        Scalar::Float(_) => Some(i128::from(super::elementwise::total_order_key(ty, x))),
        Scalar::Complex(..) => None,
    }
}
