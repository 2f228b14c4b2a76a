//! Combiners of reductions, and the elements that are reduced.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{CompId, Result};

use crate::elemental::{self, Value};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;

/// Operand of a reduction: an element at the coordinates of the loops.
pub(crate) type Element<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr]) -> Result<Value<'e, 'ctx>> + 'a;

/// Combiner of two groups of values.
#[derive(Clone, Copy)]
pub(crate) enum Combiner {
    /// An operation on each value apart, in any order.
    Each(BinaryOp),
    /// A computation of all values of the one and all of the other, which comes after it.
    Computation(CompId),
}

/// The elements at coordinates of the extents, one of each array that is reduced.
pub(crate) type Elements<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr]) -> Result<Vec<Value<'e, 'ctx>>> + 'a;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Puts two groups of values together.
    pub(crate) fn combine(
        &self,
        combiner: Combiner,
        left: &[Value<'e, 'ctx>],
        right: &[Value<'e, 'ctx>],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        match combiner {
            Combiner::Each(op) => {
                left.iter().zip(right).map(|(&x, &y)| elemental::binary(self.emitter, op, x, y)).collect()
            }
            Combiner::Computation(computation) => self.call(computation, &[left, right].concat()),
        }
    }
}
