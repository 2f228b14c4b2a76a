//! Ranges cut into chunks for threads.

use std::ops::Range;

/// A range from 0 on, cut into chunks of one size but for the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    extent: usize,
    size: usize,
}

impl Chunks {
    /// About `chunks` chunks, of a multiple of `step` each.
    pub fn new(extent: usize, chunks: usize, step: usize) -> Chunks {
        Chunks { extent, size: extent.div_ceil(chunks.max(1)).next_multiple_of(step).max(1) }
    }

    /// Chunks in all.
    pub fn count(&self) -> usize {
        self.extent.div_ceil(self.size)
    }

    /// A chunk.
    pub fn get(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.size;
        start..(start + self.size).min(self.extent)
    }
}
