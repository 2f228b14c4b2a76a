//! Requests of a thread: operations on `mbarrier` objects in shared memory, and bulk copies of tensors (TMA).

use super::{Slot, Slots};

/// Address operand.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Slot of the base address.
    pub base: Slot,
    /// Added to it.
    pub offset: i32,
}

/// Phase that a thread waits for.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// Latest phase whose parity is the value of the slot (`.parity`).
    Parity(Slot),
    /// Phase of a state token that `mbarrier.arrive` returned.
    Of(Slot),
}

/// Request of a thread.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// `mbarrier.init`: initialises a barrier in eight bytes of shared memory.
    Initialize {
        /// Address of the barrier.
        barrier: Address,
        /// Number of arrivals that complete a phase.
        count: Slot,
    },
    /// `mbarrier.inval`: invalidates a barrier.
    Invalidate(Address),
    /// `mbarrier.arrive`, `mbarrier.arrive.expect_tx`: adds expected bytes, then arrives.
    Arrive {
        /// Address of the barrier.
        barrier: Address,
        /// Number of arrivals.
        count: Slot,
        /// Number of additional bytes that copies of the phase will transfer.
        bytes: Slot,
        /// Slot for the state token.
        state: Slot,
    },
    /// `mbarrier.expect_tx`: adds expected bytes.
    Expect {
        /// Address of the barrier.
        barrier: Address,
        /// Number of bytes.
        bytes: Slot,
    },
    /// `mbarrier.test_wait`, `mbarrier.try_wait`: tests whether a phase is complete.
    Wait {
        /// Address of the barrier.
        barrier: Address,
        /// Phase.
        phase: Phase,
        /// Slot for the result.
        p: Slot,
    },
    /// `cp.async.bulk.tensor`: starts a copy of a box of a tensor into shared memory.
    Copy {
        /// Destination.
        to: Address,
        /// Generic address of the tensor map.
        map: Address,
        /// Coordinates of the first element of the box, the fastest dimension first.
        coordinates: Slots,
        /// Barrier that receives `complete_tx` for the copied bytes.
        barrier: Address,
    },
    /// `prefetch.tensormap`: reads a tensor map.
    Prefetch(Address),
    /// `fence.proxy.async`: makes prior accesses visible to bulk copies and wgmma (the async proxy).
    Fence,
}
