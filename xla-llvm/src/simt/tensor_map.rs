//! Tensor maps: which boxes of an array are copied in bulk into shared memory, and how they lie there
//! (`cp.async.bulk.tensor` of the PTX ISA).

/// Bytes that every stride of a map, and the address of its array, are multiples of.
pub const MAP_ALIGNMENT: u64 = 16;
/// Elements of a box along a dimension, at most.
pub const MOST_BOX_EXTENT: u64 = 256;
/// Dimensions of a map, at most.
pub const MOST_MAP_RANK: usize = 5;

/// Boxes of an array that are copied in bulk. A kernel has a map as a parameter after its 64-bit words; whoever
/// launches it encodes the map with the address that the array has then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The number of the kernel's address at which the array begins.
    pub array: u32,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element_bytes: u32,
    /// Elements along each of one to [`MOST_MAP_RANK`] dimensions, at least one and below 2^32; those of the first
    /// dimension lie together. Elements of boxes that are beyond them are zeros.
    pub extents: Vec<u64>,
    /// Bytes from one to the next along each dimension but the first: multiples of [`MAP_ALIGNMENT`] below 2^40.
    pub strides: Vec<u64>,
    /// Elements of a box along each dimension, 1 to [`MOST_BOX_EXTENT`].
    pub box_extents: Vec<u32>,
    /// The order of the 16-byte chunks of a box's rows.
    pub swizzle: Swizzle,
}

/// The order of 16-byte chunks in shared memory: which bits of a chunk's number are flipped (XOR) by those of its row,
/// so that the same chunk of eight rows is in different banks. Rows begin at multiples of their bytes, and eight of
/// them at a multiple of eight times that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Rows of 32 bytes: one bit, by bit 2 of the row's number.
    Bytes32,
    /// Rows of 64 bytes: two bits, by bits 1 and 2.
    Bytes64,
    /// Rows of 128 bytes: three bits, by bits 0 to 2.
    Bytes128,
}

impl Swizzle {
    /// Bytes of a row.
    pub fn bytes(self) -> u64 {
        match self {
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }

    /// The widest one whose rows divide so many bytes; `None` where none does.
    pub fn of_rows(bytes: u64) -> Option<Swizzle> {
        [Swizzle::Bytes128, Swizzle::Bytes64, Swizzle::Bytes32]
            .into_iter()
            .find(|swizzle| bytes > 0 && bytes.is_multiple_of(swizzle.bytes()))
    }
}

impl TensorMap {
    /// Bytes of a box in shared memory.
    pub fn box_bytes(&self) -> u64 {
        self.box_extents.iter().map(|&extent| u64::from(extent)).product::<u64>() * u64::from(self.element_bytes)
    }
}
