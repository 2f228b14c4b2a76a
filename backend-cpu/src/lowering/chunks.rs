//! Ranges cut into pieces for threads.

use std::ops::Range;

/// A range from 0 on, cut into pieces of one size but for the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    extent: usize,
    size: usize,
}

impl Chunks {
    /// About `pieces` pieces, of a multiple of `step` each.
    pub fn new(extent: usize, pieces: usize, step: usize) -> Chunks {
        Chunks { extent, size: extent.div_ceil(pieces.max(1)).next_multiple_of(step).max(1) }
    }

    /// Pieces in all.
    pub fn count(&self) -> usize {
        self.extent.div_ceil(self.size)
    }

    /// A piece.
    pub fn get(&self, piece: usize) -> Range<usize> {
        let start = piece * self.size;
        start..(start + self.size).min(self.extent)
    }
}
