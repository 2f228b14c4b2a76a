//! The softmax of a row of which one tile after the other is known.

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::math::gpu;
use crate::simt::Shuffle;

/// A row so far.
#[derive(Clone, Copy)]
pub(super) struct Row<'e, 'ctx> {
    /// The largest logit of the whole row.
    pub largest: Lanes<'e, 'ctx>,
    /// The sum of exponentials: of all, or of the thread's own where others have some.
    pub sum: Lanes<'e, 'ctx>,
}

/// A row with another tile.
pub(super) struct Step<'e, 'ctx> {
    pub row: Row<'e, 'ctx>,
    pub exponentials: Vec<Lanes<'e, 'ctx>>,
    /// The factor of what was summed before.
    pub scale: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Row<'e, 'ctx> {
    /// A row with logits of another tile, and the largest one of the whole row's in it.
    ///
    /// As long as all logits are minus infinity, exponentials are zeros, and so is their sum in the end: 0 / 0 is the
    /// NaN of a softmax of nothing else. A NaN, or infinity less infinity, stays in the sum.
    pub fn with(self, largest: Lanes<'e, 'ctx>, logits: &[Lanes<'e, 'ctx>]) -> Step<'e, 'ctx> {
        let largest = self.largest.maximum(largest);
        let reference = reference(largest);
        let scale = exponential(self.largest - reference);
        let exponentials: Vec<_> = logits.iter().map(|&x| exponential(x - reference)).collect();
        let sum = exponentials.iter().copied().reduce(|a, b| a + b);
        let sum = sum.map_or(self.sum, |sum| self.sum.fma(scale, sum));
        Step { row: Row { largest, sum }, exponentials, scale }
    }

    /// The factor of what was summed where others found that logit to be the largest.
    pub fn scale(self, largest: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        exponential(self.largest - reference(largest))
    }
}

/// Of whose difference to logits exponentials are computed.
fn reference<'e, 'ctx>(largest: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    largest.ne(f64::NEG_INFINITY).select(largest, 0.0)
}

/// Its relative error, 2^-20, is less than what a sum of products in f32 is rounded by.
fn exponential<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    gpu::exp_of_negative(x)
}

/// The same operation on the values of the four threads of a row, which all of them get.
pub(super) fn of_row<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    own: Lanes<'e, 'ctx>,
    combine: impl Fn(Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
) -> Result<Lanes<'e, 'ctx>> {
    debug_assert!(own.scalar() == Scalar::F32);
    [1, 2].into_iter().try_fold(own, |own, bit| Ok(combine(own, emitter.shuffle(own, Shuffle::Xor(bit))?)))
}
