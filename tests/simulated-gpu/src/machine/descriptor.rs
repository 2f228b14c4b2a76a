//! Descriptors of matrices in shared memory for products of warp groups, by the PTX ISA: canonical layouts of chunks of
//! 16 bytes.

use super::tensor_map::Swizzle;

/// Bits of a descriptor that are zero: those between its numbers, and the base offset.
const ZERO: u64 = 0x3fff_c000_c000_c000;

/// A matrix in shared memory. Its rows are rows of the left factor, or columns of the right one; its depth is what is
/// summed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    start: usize,
    leading: usize,
    stride: usize,
    swizzle: Swizzle,
    /// Whether neighbours in memory are of neighbouring rows.
    transposed: bool,
}

impl Descriptor {
    /// The descriptor of 64 bits; `None` if they have something in them that is not known.
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

    /// The address of a chunk: of the neighbours in depth of a row from `chunk` on, or if it is transposed of the
    /// neighbouring rows from `chunk` on.
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

    /// Chunks of so many rows from one on and so many elements in depth, of `in_chunk` elements: the addresses, each
    /// with row and depth of its first element.
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

    /// The place of an element of a chunk, behind the first one of it, in rows and depth.
    pub fn step(&self) -> (usize, usize) {
        if self.transposed { (1, 0) } else { (0, 1) }
    }
}
