//! The softmax of a row of which one tile after the other is known.

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::math::gpu;
use crate::simt::Shuffle;

/// A thread's part of a row so far; four threads have a row.
#[derive(Clone, Copy)]
pub(super) struct Row<'e, 'ctx> {
    /// The largest logit of the whole row.
    pub largest: Lanes<'e, 'ctx>,
    /// The sum of the thread's own exponentials.
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
    /// A row with a thread's logits of another tile.
    ///
    /// As long as all logits are minus infinity, exponentials are zeros, and so is their sum in the end: 0 / 0 is the
    /// NaN of a softmax of nothing else. A NaN, or infinity less infinity, stays in the sum.
    pub fn with(self, emitter: &'e Emitter<'ctx>, logits: &[Lanes<'e, 'ctx>]) -> Result<Step<'e, 'ctx>> {
        let own = logits.iter().copied().reduce(Lanes::maximum).unwrap_or(self.largest);
        let largest = self.largest.maximum(of_row(emitter, own, Lanes::maximum)?);
        let reference = largest.ne(f64::NEG_INFINITY).select(largest, 0.0);
        // Tensor cores take fewer bits than are right.
        let exponential = |x: Lanes<'e, 'ctx>| gpu::exp_of_negative(x - reference);
        let scale = exponential(self.largest);
        let exponentials: Vec<_> = logits.iter().map(|&x| exponential(x)).collect();
        let sum = exponentials.iter().copied().reduce(|a, b| a + b);
        let sum = sum.map_or(self.sum, |sum| self.sum.fma(scale, sum));
        Ok(Step { row: Row { largest, sum }, exponentials, scale })
    }

    /// The factor of the sums of products with exponentials.
    pub fn factor(self, emitter: &'e Emitter<'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let sum = of_row(emitter, self.sum, |a, b| a + b)?;
        Ok(sum.constant(1.0) / sum)
    }
}

/// The same operation on the values of the four threads of a row, which all of them get.
fn of_row<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    own: Lanes<'e, 'ctx>,
    combine: impl Fn(Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
) -> Result<Lanes<'e, 'ctx>> {
    debug_assert!(own.scalar() == Scalar::F32);
    [1, 2].into_iter().try_fold(own, |own, bit| Ok(combine(own, emitter.shuffle(own, Shuffle::Xor(bit))?)))
}
