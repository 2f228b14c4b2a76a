//! Places in shared memory of a tile's rows.

use crate::lanes::Lanes;
use crate::simt::COPY_BYTES;

/// Chunks of eight rows that go through all banks.
const BANKS: u64 = 8;

/// Rows of a tile, each an element of a head after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileShape {
    /// Number of rows.
    pub rows: u64,
    /// Elements of a chunk.
    pub chunk: u64,
    /// Chunks of a row.
    pub chunks: u64,
    /// Elements from one row to the next.
    pub stride: u64,
    /// Bytes of an element.
    pub bytes: u64,
}

impl TileShape {
    /// Of so many rows and elements, of so many bytes each.
    pub fn new(rows: u64, elements: u64, bytes: u64) -> TileShape {
        let chunk = COPY_BYTES / bytes;
        let chunks = elements / chunk;
        // Numbers of chunks are permuted where eight rows begin at the same bank; otherwise a chunk more does it.
        let padding = if chunks.is_multiple_of(BANKS) { 0 } else { chunk };
        TileShape { rows, chunk, chunks, stride: elements + padding, bytes }
    }

    /// Bytes of shared memory.
    pub fn all_bytes(self) -> u64 {
        self.rows * self.stride * self.bytes
    }

    fn is_permuted(self) -> bool {
        self.chunks.is_multiple_of(BANKS)
    }

    /// The element where a chunk of a row begins.
    pub fn place<'e, 'ctx>(self, row: Lanes<'e, 'ctx>, chunk: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let chunk = if self.is_permuted() { chunk ^ (row & (BANKS as i64 - 1)) } else { chunk };
        row * self.stride as i64 + chunk * self.chunk as i64
    }

    /// Places of chunks two apart, from one on, after which the permutation repeats.
    pub fn places<'e, 'ctx>(self, row: Lanes<'e, 'ctx>, chunk: Lanes<'e, 'ctx>) -> Vec<Lanes<'e, 'ctx>> {
        let count = if self.is_permuted() { BANKS / 2 } else { 1 };
        (0..count).map(|number| self.place(row, chunk + (2 * number) as i64)).collect()
    }
}
