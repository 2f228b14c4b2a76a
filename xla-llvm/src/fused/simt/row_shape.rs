//! Rows of kernels with a thread group per row.

use crate::fused::analysis::{FusedKernel, ReduceDirection};
use crate::fused::tuning::device::many_threads;
use crate::fused::tuning::row_reduce::{LARGEST, LEAST_REDUCTION, PER_THREAD};
use crate::simt::WARP;
use crate::target::Target;

/// Rows of a kernel: the dimensions that index them, and the threads that compute one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Number of leading dimensions that index rows; the others are within a row.
    pub rows: usize,
    /// Number of threads per group.
    pub threads: u32,
}

impl FusedKernel<'_, '_> {
    /// Returns the rows of the kernel, if threads reduce them together or some results have one element per row.
    pub(crate) fn row_shape(&self, target: &Target) -> Option<RowShape> {
        let rank = self.dims.len();
        let least = self.outputs.iter().map(|o| o.shape.rank()).min().unwrap_or(rank);
        let rows = self.rows().unwrap_or(least);
        let row: u64 = self.dims[rows..].iter().map(|&d| d as u64).product();
        let reduction = self.longest_reduction();
        if rows == rank && reduction < LEAST_REDUCTION {
            return None;
        }
        // Combining the results of a group costs each of its threads the same. Groups are therefore smaller if there
        // are enough of them to occupy the device.
        let longest = row.max(reduction);
        let elements = self.dims[..rows].iter().fold(longest, |all, &d| all.saturating_mul(d as u64));
        let is_many = elements / (2 * PER_THREAD) >= many_threads(target);
        let per_thread = if is_many { 2 * PER_THREAD } else { PER_THREAD };
        let threads = (longest / per_thread).next_power_of_two().clamp(WARP.into(), LARGEST.into());
        Some(RowShape { rows, threads: threads as u32 })
    }

    /// Returns the rows of a kernel that one block computes: one row per warp if there are enough rows, or rows are
    /// short; otherwise one row per block. `threads`, the size of the block, is a power of two.
    pub(crate) fn row_shape_in_block(&self, target: &Target, threads: u32) -> Option<RowShape> {
        // An in-place result has no rows.
        let shape = self.row_shape(target).filter(|_| !self.source.in_place)?;
        let extent = |dims: &[usize]| dims.iter().fold(1u64, |all, &d| all.saturating_mul(d as u64));
        let (rows, row) = (extent(&self.dims[..shape.rows]), extent(&self.dims[shape.rows..]));
        let by_warps = rows >= u64::from(threads / WARP) || row.max(self.longest_reduction()) < threads.into();
        Some(RowShape { threads: if by_warps { WARP } else { threads }, ..shape })
    }

    /// Returns the number of elements of the longest reduction along rows that a group computes.
    pub(super) fn longest_reduction(&self) -> u64 {
        let computed = self.computed();
        let along = |id: &&xla_hlo::InstrId| self.group_reduce_direction(**id) == Some(ReduceDirection::AlongRows);
        computed.iter().filter(along).map(|&id| self.reduction_size(id)).max().unwrap_or(0)
    }
}
