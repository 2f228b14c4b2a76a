//! Iteration ranges of loops.

use crate::lanes::Lanes;

/// Range of a loop: from `start` to `end` (64-bit scalars), vectorized by `width` lanes.
#[derive(Clone, Copy)]
pub(crate) struct Range<'e, 'ctx> {
    pub start: Lanes<'e, 'ctx>,
    pub end: Lanes<'e, 'ctx>,
    /// Exclusive upper bound of the loop's symbol, if known.
    pub extent: Option<u64>,
    /// Number of lanes of one iteration; 1 for a scalar loop.
    pub width: u32,
    /// Increment per iteration: `width`, or more if other threads execute the iterations in between.
    pub step: u64,
    /// Whether the length is known to be a multiple of `width`, so that no epilogue is needed.
    pub whole: bool,
}
