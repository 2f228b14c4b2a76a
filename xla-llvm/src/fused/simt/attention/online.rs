//! Online softmax of a row whose logits arrive tile by tile.

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::math::gpu;
use crate::simt::Shuffle;

/// State of a row after some tiles.
#[derive(Clone, Copy)]
pub(super) struct Row<'e, 'ctx> {
    /// Largest logit of the row so far.
    pub largest: Lanes<'e, 'ctx>,
    /// Sum of exponentials: of the whole row, or only of the thread's own columns if other threads have some.
    pub sum: Lanes<'e, 'ctx>,
}

/// Result of adding a tile to a row.
pub(super) struct Step<'e, 'ctx> {
    pub row: Row<'e, 'ctx>,
    pub exponentials: Vec<Lanes<'e, 'ctx>>,
    /// Factor that rescales earlier sums.
    pub scale: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Row<'e, 'ctx> {
    /// Adds a tile's logits to the row. `largest` is the largest logit of the whole row in that tile.
    ///
    /// As long as all logits are minus infinity, the exponentials and their sum are zero. If that holds for the whole
    /// row, 0 / 0 is the NaN that a softmax of such a row returns. NaN logits, and infinity minus infinity, remain NaN
    /// in the sum.
    pub fn with(self, largest: Lanes<'e, 'ctx>, logits: &[Lanes<'e, 'ctx>]) -> Step<'e, 'ctx> {
        let largest = self.largest.maximum(largest);
        let reference = reference(largest);
        let scale = exponential(self.largest - reference);
        let exponentials: Vec<_> = logits.iter().map(|&x| exponential(x - reference)).collect();
        let sum = exponentials.iter().copied().reduce(|a, b| a + b);
        let sum = sum.map_or(self.sum, |sum| self.sum.fma(scale, sum));
        Step { row: Row { largest, sum }, exponentials, scale }
    }

    /// Returns the factor that rescales this row's sums when the largest logit over all threads is `largest`.
    pub fn scale(self, largest: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        exponential(self.largest - reference(largest))
    }
}

/// Returns the value to subtract from logits before exponentiation: the largest logit, or 0 if it is minus infinity.
fn reference<'e, 'ctx>(largest: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    largest.ne(f64::NEG_INFINITY).select(largest, 0.0)
}

/// Approximates `exp(x)`. The relative error, 2^-20, is less than the rounding error of a sum of products in f32.
fn exponential<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    gpu::exp_of_negative(x)
}

/// Reduces the values of the four threads of a row; all of them receive the result.
pub(super) fn of_row<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    own: Lanes<'e, 'ctx>,
    combine: impl Fn(Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
) -> Result<Lanes<'e, 'ctx>> {
    debug_assert!(own.scalar() == Scalar::F32);
    [1, 2].into_iter().try_fold(own, |own, bit| Ok(combine(own, emitter.shuffle(own, Shuffle::Xor(bit))?)))
}
