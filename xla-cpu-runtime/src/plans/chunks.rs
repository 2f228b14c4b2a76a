//! Ranges split into chunks for threads.

use std::ops::Range;

/// Range from 0 on, split into chunks of equal size; the last one may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    extent: usize,
    size: usize,
}

impl Chunks {
    /// Splits `extent` into about `chunks` chunks, each a multiple of `step`.
    pub fn new(extent: usize, chunks: usize, step: usize) -> Chunks {
        Chunks { extent, size: extent.div_ceil(chunks.max(1)).next_multiple_of(step).max(1) }
    }

    /// Returns the total number of chunks.
    pub fn count(&self) -> usize {
        self.extent.div_ceil(self.size)
    }

    /// Returns the range of a chunk.
    pub fn get(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.size;
        start..(start + self.size).min(self.extent)
    }
}
