//! Tensor maps: a tensor in global memory, the size of its boxes, and their layout in shared memory. The 128 bytes of a
//! map use an encoding of the simulator's own.

/// Maximum number of dimensions.
pub const MOST_DIMENSIONS: usize = 5;

/// Size of a map in bytes.
pub const MAP_BYTES: usize = 128;

/// First word of a map.
const MAGIC: u64 = 0x7053_6e65_5472_616d;

/// Offset of the checksum in a map.
const SUM: usize = MAP_BYTES - 8;

/// Permutation of 16-byte chunks of shared memory by address bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    /// No permutation.
    #[default]
    None,
    /// Permutation of chunks within 32 bytes.
    Bytes32,
    /// Permutation of chunks within 64 bytes.
    Bytes64,
    /// Permutation of chunks within 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// Returns the number of bytes within which chunks are permuted.
    pub fn span(self) -> usize {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }

    /// Returns the address of the chunk with a logical address: bits from 7 on are XORed to the bits from 4 on.
    pub fn place(self, address: usize) -> usize {
        address ^ (address >> 3 & (self.span() - 16))
    }

    fn number(self) -> u8 {
        self as u8
    }

    fn of(number: u8) -> Option<Swizzle> {
        let all = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];
        all.get(usize::from(number)).copied()
    }
}

/// Tensor map. Dimensions are in memory order, the fastest one first; those beyond the rank have size one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Size of an element in bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// Number of dimensions: 1 to 5.
    pub rank: usize,
    /// Address of the first element.
    pub address: u64,
    /// Number of elements by dimension: 1 to 2^32.
    pub sizes: [u64; MOST_DIMENSIONS],
    /// Distance of consecutive elements in bytes, by dimension.
    pub strides: [u64; MOST_DIMENSIONS],
    /// Size of a box by dimension: 1 to 256.
    pub extents: [u32; MOST_DIMENSIONS],
    /// Element strides of a box by dimension: 1 to 8; ignored in the first dimension.
    pub steps: [u32; MOST_DIMENSIONS],
    /// Permutation of a box in shared memory.
    pub swizzle: Swizzle,
}

impl TensorMap {
    /// Encodes the map.
    pub fn encode(&self) -> [u8; MAP_BYTES] {
        let mut bytes = Vec::with_capacity(MAP_BYTES);
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(self.address.to_le_bytes());
        bytes.extend(self.strides.iter().flat_map(|stride| stride.to_le_bytes()));
        bytes.extend(self.sizes.iter().flat_map(|size| ((size - 1) as u32).to_le_bytes()));
        bytes.extend(self.extents.iter().map(|extent| (extent - 1) as u8));
        bytes.extend(self.steps.iter().map(|step| *step as u8));
        bytes.extend([self.width as u8, self.rank as u8, self.swizzle.number()]);
        let mut map = [0; MAP_BYTES];
        map[..bytes.len()].copy_from_slice(&bytes);
        let sum = sum(&map);
        map[SUM..].copy_from_slice(&sum.to_le_bytes());
        map
    }

    /// Decodes 128 bytes; `None` if they are not a valid map.
    pub fn decode(bytes: &[u8]) -> Option<TensorMap> {
        let map: &[u8; MAP_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| map[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        if word(0) != MAGIC || word(SUM) != sum(map) {
            return None;
        }
        let each = |number: fn(usize) -> usize| std::array::from_fn::<usize, MOST_DIMENSIONS, _>(number);
        Some(TensorMap {
            address: word(8),
            strides: each(|d| 16 + 8 * d).map(word),
            sizes: each(|d| 56 + 4 * d).map(|at| (word(at) & 0xffff_ffff) + 1),
            extents: each(|d| 76 + d).map(|at| u32::from(map[at]) + 1),
            steps: each(|d| 81 + d).map(|at| u32::from(map[at])),
            width: map[86].into(),
            rank: map[87].into(),
            swizzle: Swizzle::of(map[88])?,
        })
    }

    /// Returns the number of elements of a box in shared memory, by dimension.
    pub fn taken(&self) -> [usize; MOST_DIMENSIONS] {
        let mut taken: [usize; MOST_DIMENSIONS] =
            std::array::from_fn(|d| self.extents[d].div_ceil(self.steps[d]) as usize);
        taken[0] = self.extents[0] as usize;
        taken
    }

    /// Returns the size of a row of a box in bytes.
    pub fn row_bytes(&self) -> usize {
        self.extents[0] as usize * self.width
    }

    /// Returns the size of a box in bytes.
    pub fn box_bytes(&self) -> usize {
        self.taken().iter().product::<usize>() * self.width
    }
}

/// Returns a checksum of a map, which distinguishes maps from other bytes.
fn sum(map: &[u8; MAP_BYTES]) -> u64 {
    map[..SUM]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_back() {
        let map = TensorMap {
            width: 2,
            rank: 3,
            address: 0x12_3456_7890,
            sizes: [1 << 32, 7, 9, 1, 1],
            strides: [2, 1 << 39, 32, 0, 0],
            extents: [64, 256, 1, 1, 1],
            steps: [1, 8, 2, 1, 1],
            swizzle: Swizzle::Bytes128,
        };
        let mut bytes = map.encode();
        assert_eq!(TensorMap::decode(&bytes), Some(map));
        assert_eq!(map.box_bytes(), 64 * 32 * 2);
        bytes[20] ^= 1;
        assert_eq!(TensorMap::decode(&bytes), None);
        assert_eq!(TensorMap::decode(&[0; MAP_BYTES]), None);
    }

    #[test]
    fn chunks_change_places_by_the_bits_above() {
        assert_eq!(Swizzle::Bytes128.place(0x0380 + 0x10), 0x0380 + 0x60);
        assert_eq!(Swizzle::Bytes64.place(0x0380 + 0x10), 0x0380 + 0x20);
        assert_eq!(Swizzle::Bytes32.place(0x0380 + 0x10), 0x0380);
        assert_eq!(Swizzle::None.place(0x0390), 0x0390);
    }
}
