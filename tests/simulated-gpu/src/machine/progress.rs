//! Progress of a warp's wgmma.

use super::knowledge::Knowledge;

/// State of a warp's wgmma.
#[derive(Clone, Debug, Default)]
pub(super) struct WarpProgress {
    /// Whether the warp has executed `wgmma.fence`.
    pub is_fenced: bool,
    /// Number of committed groups, and of completed ones.
    pub ended: u32,
    pub done: u32,
    /// Number of uncommitted wgmma, and of all wgmma.
    pub open: u32,
    pub products: u64,
    /// Knowledge that all lanes share, the sum of the lanes' clocks when it was computed, and its stamp.
    pub knows: Knowledge,
    pub asked: u64,
    pub stamp: u64,
}

impl WarpProgress {
    /// Whether any wgmma has not been waited for.
    pub fn is_busy(&self) -> bool {
        self.ended > self.done || self.open > 0
    }
}
