//! Tensor maps of a kernel as an executable stores them: boxes of an array that TMA copies to shared memory.

use serde::{Deserialize, Serialize};

/// Maximum number of dimensions.
const MOST_RANK: usize = 5;
/// Alignment in bytes of the array's address, of its strides, and of the rows of a box.
pub(crate) const ALIGNMENT: u64 = 16;
/// Exclusive bound of the number of elements of a dimension.
const EXTENT_BOUND: u64 = 1 << 32;
/// Exclusive bound of strides in bytes.
const STRIDE_BOUND: u64 = 1 << 40;
/// Maximum number of elements of a box along a dimension.
const MOST_BOX_EXTENT: u32 = 256;

/// Tensor map of an array: a parameter of the kernel, encoded with the array's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelMap {
    /// Index of the kernel parameter that is the array's address.
    pub array: u32,
    /// Size of an element in bytes: 1, 2, 4 or 8.
    pub element_bytes: u32,
    /// Number of elements along each of one to five dimensions, at least one and below 2^32. The first dimension is
    /// contiguous.
    pub extents: Vec<u64>,
    /// Stride in bytes of each dimension except the first: multiples of [`ALIGNMENT`] below 2^40.
    pub strides: Vec<u64>,
    /// Number of elements of a box along each dimension, 1 to 256.
    pub box_extents: Vec<u32>,
    /// Swizzle of the 16-byte chunks of a box's rows.
    pub swizzle: MapSwizzle,
}

/// Swizzle mode, named by the maximum number of bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MapSwizzle {
    Bytes32,
    Bytes64,
    Bytes128,
}

impl KernelMap {
    /// Whether the driver can encode the map, for a kernel of `parameters` parameters.
    pub fn is_sound(&self, parameters: usize) -> bool {
        let rank = self.extents.len();
        (self.array as usize) < parameters
            && matches!(self.element_bytes, 1 | 2 | 4 | 8)
            && (1..=MOST_RANK).contains(&rank)
            && [self.strides.len() + 1, self.box_extents.len()] == [rank; 2]
            && self.extents.iter().all(|extent| (1..EXTENT_BOUND).contains(extent))
            && self.strides.iter().all(|&stride| stride < STRIDE_BOUND && stride.is_multiple_of(ALIGNMENT))
            && self.box_extents.iter().all(|extent| (1..=MOST_BOX_EXTENT).contains(extent))
            && self.has_whole_rows()
    }

    /// Whether the rows of a box consist of whole 16-byte chunks and fit the swizzle.
    fn has_whole_rows(&self) -> bool {
        let bytes = self.box_extents.first().map_or(0, |&extent| u64::from(extent) * u64::from(self.element_bytes));
        bytes.is_multiple_of(ALIGNMENT) && bytes <= self.swizzle.bytes()
    }
}

impl MapSwizzle {
    fn bytes(self) -> u64 {
        match self {
            MapSwizzle::Bytes32 => 32,
            MapSwizzle::Bytes64 => 64,
            MapSwizzle::Bytes128 => 128,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a map of 8 x 8 boxes of an array of 5 rows of 12 elements of 4 bytes, the first parameter.
    pub(crate) fn map() -> KernelMap {
        KernelMap {
            array: 0,
            element_bytes: 4,
            extents: vec![12, 5],
            strides: vec![48],
            box_extents: vec![8, 8],
            swizzle: MapSwizzle::Bytes32,
        }
    }

    /// Returns invalid maps, which the driver must not receive.
    pub(crate) fn garbled() -> Vec<KernelMap> {
        let with = |change: &dyn Fn(&mut KernelMap)| {
            let mut garbled = map();
            change(&mut garbled);
            garbled
        };
        vec![
            with(&|map| map.array = 2),
            with(&|map| map.array = u32::MAX),
            with(&|map| map.element_bytes = 0),
            with(&|map| map.element_bytes = 16),
            with(&|map| (map.extents, map.strides, map.box_extents) = Default::default()),
            with(&|map| {
                (map.extents, map.strides, map.box_extents) = (vec![12; 6], vec![48; 5], vec![8, 1, 1, 1, 1, 1])
            }),
            with(&|map| map.extents.truncate(1)),
            with(&|map| map.extents[1] = 0),
            with(&|map| map.extents[0] = EXTENT_BOUND),
            with(&|map| map.strides.clear()),
            with(&|map| map.strides[0] = 40),
            with(&|map| map.strides[0] = STRIDE_BOUND),
            with(&|map| map.box_extents.push(1)),
            with(&|map| map.box_extents[1] = 0),
            with(&|map| map.box_extents[1] = 257),
            with(&|map| map.box_extents[0] = 7),
            with(&|map| map.box_extents[0] = 16),
        ]
    }

    #[test]
    fn garbled_maps_are_told_from_sound_ones() {
        assert!(map().is_sound(1));
        let deep = KernelMap { extents: vec![8; 5], strides: vec![0; 4], box_extents: vec![8; 5], ..map() };
        assert!(deep.is_sound(1));
        let long = KernelMap { extents: vec![EXTENT_BOUND - 1], strides: vec![], box_extents: vec![8], ..map() };
        assert!(long.is_sound(1));
        for garbled in garbled() {
            assert!(!garbled.is_sound(2), "{garbled:?}");
        }
        assert!(!map().is_sound(0));
    }
}
