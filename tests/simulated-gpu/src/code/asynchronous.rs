//! Requests of a thread to barriers in shared memory (`mbarrier`) and for bulk copies of tensors.

use super::{Slot, Slots};

/// An address.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The slot.
    pub base: Slot,
    /// Added to it.
    pub offset: i32,
}

/// The phase that a thread waits for.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// The last one whose number is even or odd, as the slot.
    Parity(Slot),
    /// The one that an arrival gave.
    Of(Slot),
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Makes eight bytes of shared memory a barrier.
    Initialize {
        /// The barrier.
        barrier: Address,
        /// Arrivals of a phase.
        count: Slot,
    },
    /// Makes a barrier memory again.
    Invalidate(Address),
    /// Expects bytes, and arrives.
    Arrive {
        /// The barrier.
        barrier: Address,
        /// Number of arrivals.
        count: Slot,
        /// Bytes that copies of the phase are to bring as well.
        bytes: Slot,
        /// Slot for the phase.
        state: Slot,
    },
    /// Expects bytes.
    Expect {
        /// The barrier.
        barrier: Address,
        /// Their number.
        bytes: Slot,
    },
    /// Whether a phase is complete.
    Wait {
        /// The barrier.
        barrier: Address,
        /// The phase.
        phase: Phase,
        /// Slot for the answer.
        p: Slot,
    },
    /// Begins a copy of a box of a tensor into shared memory.
    Copy {
        /// Destination.
        to: Address,
        /// The tensor map, by its generic address.
        map: Address,
        /// The box's first element, the fastest dimension first.
        coordinates: Slots,
        /// The barrier that is told of its bytes.
        barrier: Address,
    },
    /// Looks at a tensor map.
    Prefetch(Address),
    /// Makes what the thread knows to be in memory visible to bulk copies and warp groups.
    Fence,
}
