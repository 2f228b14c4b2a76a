//! Plan of copies of arrays in shared memory, in which blocks combine updates.

use crate::fused::kernel::Launch;
use crate::fused::tuning::device::many_threads;
use crate::fused::tuning::scatter::{
    AT_ONCE, BLOCK_SECONDS, MEETING_SECONDS, MOST_COPIES, SEVERAL_BYTES, SHARED_BYTES, THREADS, UPDATE_SECONDS,
};
use crate::target::Target;

/// Elements whose number shared memory for an array is a multiple of: so it ends where another array may begin.
const CELLS: u64 = 16;

/// Copies of the arrays in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockCopies {
    /// Those of a block, a power of two.
    pub copies: u64,
    pub blocks: u64,
    /// Updates of a block.
    pub chunk: u64,
}

impl BlockCopies {
    /// Copies of arrays with as many elements, of as many bytes together, for a number of updates. `None` where they do
    /// not fit, and where updates of the arrays themselves take less time. Updates of single elements may have several
    /// copies: neighbours of a window do not meet.
    pub fn new(updates: u64, (elements, bytes): (u64, u64), single: bool, target: &Target) -> Option<BlockCopies> {
        let cells = elements.checked_next_multiple_of(CELLS)?;
        let bytes = cells.checked_mul(bytes).filter(|bytes| (1..=SHARED_BYTES).contains(bytes))?;
        let copies = if single { 1 << (SEVERAL_BYTES / bytes).clamp(1, MOST_COPIES).ilog2() } else { 1 };
        // Blocks share the updates; each brings its copies to the arrays at the end.
        let ideal = (updates as f64 * BLOCK_SECONDS / (elements as f64 * UPDATE_SECONDS)).sqrt();
        let turn = THREADS * AT_ONCE;
        let most = (many_threads(target) / THREADS).min(updates.div_ceil(turn)).max(1);
        let chunk = updates.div_ceil((ideal as u64).clamp(1, most)).next_multiple_of(turn);
        let blocks = updates.div_ceil(chunk);
        let in_blocks = chunk as f64 * BLOCK_SECONDS + (blocks * elements) as f64 * UPDATE_SECONDS;
        let in_arrays = updates as f64 * (UPDATE_SECONDS + MEETING_SECONDS / elements as f64);
        (in_blocks < in_arrays).then_some(BlockCopies { copies, blocks, chunk })
    }

    /// Elements of a block's copies of an array with that many: as many as fill words, since exchanges of narrow
    /// elements read the words around them.
    pub fn cells(&self, elements: u64) -> u64 {
        (elements * self.copies).next_multiple_of(CELLS)
    }

    /// The launch.
    pub fn launch(&self) -> Launch {
        Launch { work_items: self.blocks, block: Some(THREADS as u32) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_updates_of_few_places_go_to_copies() {
        let target = Target::host_threads().unwrap().with_multiprocessors(132);
        let copies = |updates, elements, bytes| BlockCopies::new(updates, (elements, bytes), true, &target);
        assert!(copies(1 << 20, 256, 4).is_some_and(|plan| plan.copies == 8 && plan.blocks > 1));
        assert!(copies(1 << 20, 10_000, 4).is_some_and(|plan| plan.copies == 1));
        assert_eq!(copies(1 << 20, 20_000, 4), None, "more than fits");
        assert_eq!(copies(1 << 20, 0, 4), None);
        assert_eq!(copies(1000, 256, 4), None, "updates of the array take less time");
        assert_eq!(copies(u64::MAX, 1 << 40, u64::MAX), None);
    }
}
