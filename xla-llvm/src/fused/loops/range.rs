//! Ranges that loops run over.

use crate::lanes::Lanes;

/// Range of a loop: from `start` to `end` (64-bit scalars) in steps of `width` lanes.
#[derive(Clone, Copy)]
pub(crate) struct Range<'e, 'ctx> {
    pub start: Lanes<'e, 'ctx>,
    pub end: Lanes<'e, 'ctx>,
    /// Values of the loop's symbol are below this.
    pub extent: Option<u64>,
    /// Lanes of one turn; 1 for a scalar loop.
    pub width: u32,
    /// From the beginning of one turn to that of the next: `width`, or more where others do the turns between.
    pub step: u64,
    /// Known multiple of `width` (both ends), so that no turn is partial.
    pub whole: bool,
}
