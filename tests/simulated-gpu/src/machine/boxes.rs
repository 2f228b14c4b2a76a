//! Boxes of tensors in bulk copies: their rows in the tensor and in shared memory.

use std::ops::Range;

use super::tensor_map::TensorMap;

/// Pending bulk copy.
#[derive(Clone, Debug)]
pub(super) struct BulkCopy {
    pub thread: usize,
    pub to: usize,
    pub map: TensorMap,
    pub coordinates: Vec<i32>,
}

/// Row of a box.
pub(super) struct Row {
    /// Offset of the first byte in the box.
    pub at: usize,
    /// Range of bytes that are in the tensor, and their address; bytes before and after the range are zero-filled.
    pub within: Range<usize>,
    pub address: u64,
}

impl BulkCopy {
    /// Returns the destination range, rounded up to the span of the swizzle.
    pub fn range(&self) -> Range<usize> {
        self.to..self.to + self.map.box_bytes().next_multiple_of(self.map.swizzle.span())
    }

    /// Returns the rows that contain elements of the tensor.
    pub fn rows(&self) -> Vec<Row> {
        let map = &self.map;
        let taken = map.taken();
        let first = i64::from(self.coordinates[0]);
        let start = first.max(0);
        let end = (first + i64::from(map.extents[0])).min(map.sizes[0] as i64);
        let mut rows = Vec::new();
        for number in 0..taken[1..].iter().product::<usize>() {
            let (mut rest, mut address, mut is_inside) = (number, map.address, start < end);
            for (d, taken) in taken.iter().enumerate().take(map.rank).skip(1) {
                let place = i64::from(self.coordinates[d]) + (rest % taken) as i64 * i64::from(map.steps[d]);
                rest /= taken;
                is_inside &= (0..map.sizes[d] as i64).contains(&place);
                address = address.wrapping_add((place as u64).wrapping_mul(map.strides[d]));
            }
            if is_inside {
                let within = (start - first) as usize * map.width..(end - first) as usize * map.width;
                let address = address.wrapping_add(start as u64 * map.width as u64);
                rows.push(Row { at: number * map.row_bytes(), within, address });
            }
        }
        rows
    }
}
