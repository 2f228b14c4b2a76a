//! Matrix descriptors of wgmma, by the PTX ISA: canonical layouts of 16-byte chunks in shared memory.

use super::tensor_map::Swizzle;

/// Bits of a descriptor that must be zero: those between its fields, and the base offset.
const ZERO: u64 = 0x3fff_c000_c000_c000;

/// Matrix in shared memory: A, or B transposed. Rows are rows of A or columns of B; depth is the contracted dimension
/// `K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    start: usize,
    leading: usize,
    stride: usize,
    swizzle: Swizzle,
    /// Whether consecutive elements in memory belong to consecutive rows (MN-major).
    transposed: bool,
}

impl Descriptor {
    /// Decodes a 64-bit descriptor; `None` if a field is not supported.
    pub fn decode(bits: u64, transposed: bool) -> Option<Descriptor> {
        let offset = |from: u32| (bits >> from & 0x3fff) as usize * 16;
        let swizzle = [Swizzle::None, Swizzle::Bytes128, Swizzle::Bytes64, Swizzle::Bytes32][(bits >> 62) as usize];
        (bits & ZERO == 0).then(|| Descriptor {
            start: offset(0),
            leading: offset(16),
            stride: offset(32),
            swizzle,
            transposed,
        })
    }

    /// Returns the address of a chunk. K-major: part `chunk` of row `line`, along depth. MN-major: part `chunk` of the
    /// rows, at depth `line`.
    fn chunk(&self, chunk: usize, line: usize) -> usize {
        let Descriptor { start, leading, stride, swizzle, transposed } = *self;
        let in_span = swizzle.span() / 16;
        let offset = match (swizzle, transposed) {
            (Swizzle::None, false) => line % 8 * 16 + line / 8 * stride + chunk * leading,
            (Swizzle::None, true) => chunk * stride + line % 8 * 16 + line / 8 * leading,
            (_, false) => line % 8 * swizzle.span() + line / 8 * stride + chunk * 16,
            (_, true) => {
                chunk % in_span * 16 + chunk / in_span * leading + line % 8 * swizzle.span() + line / 8 * stride
            }
        };
        swizzle.place(start + offset)
    }

    /// Returns the chunks of `in_chunk` elements of a part of the matrix: addresses, each with the row and depth of its
    /// first element.
    pub fn chunks(&self, first: usize, rows: usize, depth: usize, in_chunk: usize) -> Vec<(usize, usize, usize)> {
        let mut chunks = Vec::new();
        if self.transposed {
            for chunk in 0..rows / in_chunk {
                let at = |k: usize| self.chunk(first / in_chunk + chunk, k);
                chunks.extend((0..depth).map(|k| (at(k), chunk * in_chunk, k)));
            }
        } else {
            for row in 0..rows {
                let at = |chunk: usize| self.chunk(chunk, first + row);
                chunks.extend((0..depth / in_chunk).map(|chunk| (at(chunk), row, chunk * in_chunk)));
            }
        }
        chunks
    }

    /// Returns the step from an element of a chunk to the next one, in rows and depth.
    pub fn step(&self) -> (usize, usize) {
        if self.transposed { (1, 0) } else { (0, 1) }
    }
}
