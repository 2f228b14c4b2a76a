//! Combiners of reductions, and the elements that they reduce.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{CompId, Result};

use crate::elemental::{self, Value};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;

/// Function that computes an element of a reduction's operand from the coordinates of the loops.
pub(crate) type Element<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr]) -> Result<Value<'e, 'ctx>> + 'a;

/// Combiner of two lists of values.
#[derive(Clone, Copy)]
pub(crate) enum Combiner {
    /// Operation on each value separately, in any order.
    Each(BinaryOp),
    /// Computation of the values of both lists; the order of the lists is kept.
    Computation(CompId),
}

/// Function that computes the elements of all reduced arrays at the coordinates of the loops.
pub(crate) type Elements<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr]) -> Result<Vec<Value<'e, 'ctx>>> + 'a;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Combines two lists of values.
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
