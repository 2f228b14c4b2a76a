//! Memory accesses: the accessing thread, its time, and conflicts with earlier accesses.

use super::knowledge::Actor;
pub(super) use super::knowledge::LANES_OF_WARP;

/// Thread that accesses memory, and the time of the access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who<'a> {
    /// Index of the thread in its block.
    pub thread: u64,
    /// Current segment of the block's execution.
    pub segment: u64,
    /// First segment of the block.
    pub block: u64,
    /// First segment that is considered: the launch's for global memory, the block's for shared memory.
    pub since: u64,
    /// Vector clock of the warp's lanes as this lane has observed it, including its own clock.
    pub heard: [u64; LANES_OF_WARP],
    /// Number of lanes in the warp.
    pub lanes: usize,
    /// Actor for the order of shared memory accesses in kernels that need more than segments; see [`super::order`].
    pub actor: Option<Actor<'a>>,
}

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read {
        strong: bool,
    },
    Write {
        strong: bool,
    },
    /// Write of the value that memory already holds; it does not conflict with other writes.
    Rewrite,
}

/// Earlier access that conflicts with the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Index of the thread in its block.
    pub thread: u64,
    /// Segment of the access.
    pub segment: u64,
    /// Whether the access was a write.
    pub wrote: bool,
    /// Origin of the access.
    pub party: Party,
}

/// Origin of a conflicting access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// Access of a thread.
    Thread,
    /// Access of a thread that is ordered before later thread accesses, but not fenced for bulk copies and wgmma.
    Unfenced,
    /// Bulk copy.
    Copy,
    /// `wgmma`.
    Product,
}

impl<'a> Who<'a> {
    /// Returns an actor as the accessor of shared memory of a block that began with segment `first`.
    pub fn agent(actor: Actor<'a>, segment: u64, first: u64) -> Who<'a> {
        Who {
            thread: actor.thread as u64,
            segment,
            block: first,
            since: first,
            heard: [0; LANES_OF_WARP],
            lanes: LANES_OF_WARP,
            actor: Some(actor),
        }
    }
}
