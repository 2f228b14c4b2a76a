//! Layout of a tile's rows in shared memory.

use crate::lanes::Lanes;
use crate::simt::COPY_BYTES;

/// Number of 16-byte chunks that cover all banks.
const BANKS: u64 = 8;

/// Layout of a tile; each row has the elements of a head in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileShape {
    /// Number of rows.
    pub rows: u64,
    /// Number of elements per chunk.
    pub chunk: u64,
    /// Number of chunks per row.
    pub chunks: u64,
    /// Stride between rows, in elements.
    pub stride: u64,
    /// Size of an element in bytes.
    pub bytes: u64,
}

impl TileShape {
    /// Returns the layout of `rows` rows of `elements` elements with `bytes` bytes each.
    pub fn new(rows: u64, elements: u64, bytes: u64) -> TileShape {
        let chunk = COPY_BYTES / bytes;
        let chunks = elements / chunk;
        // Against bank conflicts, chunks are permuted if eight rows begin in the same bank; otherwise padding of one
        // chunk is enough.
        let padding = if chunks.is_multiple_of(BANKS) { 0 } else { chunk };
        TileShape { rows, chunk, chunks, stride: elements + padding, bytes }
    }

    /// Returns the size in bytes of shared memory.
    pub fn all_bytes(self) -> u64 {
        self.rows * self.stride * self.bytes
    }

    fn is_permuted(self) -> bool {
        self.chunks.is_multiple_of(BANKS)
    }

    /// Returns the position of the first element of a row's chunk.
    pub fn place<'e, 'ctx>(self, row: Lanes<'e, 'ctx>, chunk: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let chunk = if self.is_permuted() { chunk ^ (row & (BANKS as i64 - 1)) } else { chunk };
        row * self.stride as i64 + chunk * self.chunk as i64
    }

    /// Returns the positions of every second chunk, starting at `chunk`, until the permutation repeats.
    pub fn places<'e, 'ctx>(self, row: Lanes<'e, 'ctx>, chunk: Lanes<'e, 'ctx>) -> Vec<Lanes<'e, 'ctx>> {
        let count = if self.is_permuted() { BANKS / 2 } else { 1 };
        (0..count).map(|number| self.place(row, chunk + (2 * number) as i64)).collect()
    }
}
