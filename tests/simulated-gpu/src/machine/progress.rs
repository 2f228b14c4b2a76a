//! Progress of a warp's products in a warp group.

use super::knowledge::Knowledge;

/// Progress of a warp's products.
#[derive(Clone, Debug, Default)]
pub(super) struct WarpProgress {
    /// Whether it has executed `wgmma.fence`.
    pub is_fenced: bool,
    /// Groups that have ended, and those of them that are done.
    pub ended: u32,
    pub done: u32,
    /// Products of the group that has not ended, and all.
    pub open: u32,
    pub products: u64,
    /// Knowledge that all lanes have, the sum of their clocks then, and its number.
    pub knows: Knowledge,
    pub asked: u64,
    pub stamp: u64,
}

impl WarpProgress {
    /// Whether there are products that nobody has waited for.
    pub fn is_busy(&self) -> bool {
        self.ended > self.done || self.open > 0
    }
}
