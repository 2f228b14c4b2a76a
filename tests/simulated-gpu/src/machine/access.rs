//! Accesses of memory: by whom, when, and which other one they are in conflict with.

use super::knowledge::Actor;
pub(super) use super::knowledge::LANES_OF_WARP;

/// The thread that touches memory, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who<'a> {
    /// Number in the block.
    pub thread: u64,
    /// The segment now.
    pub segment: u64,
    /// The first segment of the block.
    pub block: u64,
    /// The first segment that matters: the launch's for global memory, the block's for shared memory.
    pub since: u64,
    /// Clocks of the lanes of the warp, as far as this lane has heard of them; its own among them.
    pub heard: [u64; LANES_OF_WARP],
    /// Lanes that there are.
    pub lanes: usize,
    /// Order of accesses instead of that by segments, for shared memory of some kernels: see [`super::order`].
    pub actor: Option<Actor<'a>>,
}

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read {
        strong: bool,
    },
    Write {
        strong: bool,
    },
    /// A write of the value that is there already, which does not conflict with other writes.
    Rewrite,
}

/// An access that is in conflict with the one that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The thread's number in its block.
    pub thread: u64,
    /// When.
    pub segment: u64,
    /// Whether it wrote.
    pub wrote: bool,
    /// Nature of the access.
    pub party: Party,
}

/// Nature of an access that is in conflict with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// A thread's own.
    Thread,
    /// A thread's own, which is ordered, but not for bulk copies and warp groups.
    Unfenced,
    /// A bulk copy.
    Copy,
    /// A product of a warp group.
    Product,
}

impl<'a> Who<'a> {
    /// An agent, as one that touches shared memory of a block that began with a segment.
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
