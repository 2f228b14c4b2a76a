//! Plan of a scatter whose blocks combine updates in copies of the arrays in shared memory.

use crate::fused::kernel::Launch;
use crate::fused::tuning::device::many_threads;
use crate::fused::tuning::scatter::{
    AT_ONCE, BLOCK_SECONDS, MEETING_SECONDS, MOST_COPIES, SEVERAL_BYTES, SHARED_BYTES, THREADS, UPDATE_SECONDS,
};
use crate::target::Target;

/// Granularity in elements of arrays in shared memory, so that the next array is aligned.
const CELLS: u64 = 16;

/// Copies of the arrays in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCopies {
    /// Copies per block, a power of two.
    pub copies: u64,
    pub blocks: u64,
    /// Number of updates per block.
    pub chunk: u64,
}

impl BlockCopies {
    /// Returns the plan for a number of updates to arrays of `elements` elements, with `bytes` bytes per element over
    /// all arrays. `None` if the copies do not fit, or if updates of the arrays in global memory are faster. Only
    /// updates of single elements have several copies: adjacent elements of a window do not collide.
    pub fn new(updates: u64, (elements, bytes): (u64, u64), single: bool, target: &Target) -> Option<BlockCopies> {
        let cells = elements.checked_next_multiple_of(CELLS)?;
        let bytes = cells.checked_mul(bytes).filter(|bytes| (1..=SHARED_BYTES).contains(bytes))?;
        let copies = if single { 1 << (SEVERAL_BYTES / bytes).clamp(1, MOST_COPIES).ilog2() } else { 1 };
        // The number of blocks balances the updates per block against the merge of each block's copies into the arrays.
        let ideal = (updates as f64 * BLOCK_SECONDS / (elements as f64 * UPDATE_SECONDS)).sqrt();
        let turn = THREADS * AT_ONCE;
        let most = (many_threads(target) / THREADS).min(updates.div_ceil(turn)).max(1);
        let chunk = updates.div_ceil((ideal as u64).clamp(1, most)).next_multiple_of(turn);
        let blocks = updates.div_ceil(chunk);
        let in_blocks = chunk as f64 * BLOCK_SECONDS + (blocks * elements) as f64 * UPDATE_SECONDS;
        let in_arrays = updates as f64 * (UPDATE_SECONDS + MEETING_SECONDS / elements as f64);
        (in_blocks < in_arrays).then_some(BlockCopies { copies, blocks, chunk })
    }

    /// Returns the number of elements of a block's copies of an array, padded to whole words, since `cmpxchg` of narrow
    /// elements reads the words around them.
    pub fn cells(&self, elements: u64) -> u64 {
        (elements * self.copies).next_multiple_of(CELLS)
    }

    /// Returns the launch.
    pub(crate) fn launch(&self) -> Launch {
        Launch { work_items: self.blocks, block: Some(THREADS as u32) }
    }
}
