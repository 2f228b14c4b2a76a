//! Tensor maps: descriptors of the boxes of an array that TMA copies into shared memory, and of their layout there
//! (`cp.async.bulk.tensor` of the PTX ISA).

/// Alignment in bytes of the array's address and of every stride of a map.
pub const MAP_ALIGNMENT: u64 = 16;
/// Maximum extent of a box along a dimension, in elements.
pub const MOST_BOX_EXTENT: u64 = 256;
/// Maximum number of dimensions of a map.
pub const MOST_MAP_RANK: usize = 5;

/// Description of an array and its boxes for TMA. Tensor maps are kernel parameters after the 64-bit words; the launch
/// encodes each map with the current address of its array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// Index of the kernel's pointer argument to the array.
    pub array: u32,
    /// Size of an element in bytes: 1, 2, 4 or 8.
    pub element_bytes: u32,
    /// Extents in elements of the one to [`MOST_MAP_RANK`] dimensions, each at least one and below 2^32. The first
    /// dimension is contiguous. Elements of a box outside these extents are zero.
    pub extents: Vec<u64>,
    /// Strides in bytes of all dimensions but the first: multiples of [`MAP_ALIGNMENT`] below 2^40.
    pub strides: Vec<u64>,
    /// Extents in elements of a box, each 1 to [`MOST_BOX_EXTENT`].
    pub box_extents: Vec<u32>,
    /// Order of the 16-byte chunks in the rows of a box.
    pub swizzle: Swizzle,
}

/// Order of the 16-byte chunks in shared memory. Some bits of the chunk's number are XORed with bits of its row's
/// number, so that equal chunks of eight consecutive rows are in different banks. Rows are aligned to their size, and
/// groups of eight rows to eight times that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Rows of 32 bytes: one bit, XORed with bit 2 of the row's number.
    Bytes32,
    /// Rows of 64 bytes: two bits, XORed with bits 1 and 2.
    Bytes64,
    /// Rows of 128 bytes: three bits, XORed with bits 0 to 2.
    Bytes128,
}

impl Swizzle {
    /// Returns the size in bytes of a row.
    pub fn bytes(self) -> u64 {
        match self {
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }

    /// Returns the widest swizzle whose row size divides `bytes`; `None` if there is none.
    pub fn of_rows(bytes: u64) -> Option<Swizzle> {
        [Swizzle::Bytes128, Swizzle::Bytes64, Swizzle::Bytes32]
            .into_iter()
            .find(|swizzle| bytes > 0 && bytes.is_multiple_of(swizzle.bytes()))
    }
}

impl TensorMap {
    /// Returns the size in bytes of a box in shared memory.
    pub fn box_bytes(&self) -> u64 {
        self.box_extents.iter().map(|&extent| u64::from(extent)).product::<u64>() * u64::from(self.element_bytes)
    }
}
