//! Device: memory, and execution of kernels in it.
//!
//! ```text
//! memory             allocations, whose addresses are never reused
//!   store            bytes, initialised flags, and the last accesses (shadow)
//! grid               blocks in sequence
//!   block            threads, each of which runs until it must wait; reach: memory accesses; copies: pending cp.async;
//!                    marks: registers of pending wgmma
//!     warp           collective instructions of lanes; mma: mma.sync
//!       warp_group   wgmma, with operands in shared memory by a descriptor
//!     requests       mbarrier operations, and bulk copies that complete at mbarriers (bulk, tensor_map)
//!     order          happens-before order of all of these
//! ```

mod access;
mod block;
mod boxes;
mod bulk;
mod copies;
mod descriptor;
mod grid;
mod knowledge;
mod launch;
mod marks;
mod mbarrier;
mod memory;
mod mma;
mod order;
mod pending;
mod progress;
mod reach;
mod requests;
mod shadow;
mod store;
mod tensor_map;
mod warp;
mod warp_group;

pub use grid::launch;
pub use launch::{Launch, Outside};
pub use memory::Memory;
pub use tensor_map::{MOST_DIMENSIONS, Swizzle, TensorMap};

/// First generic address of shared memory.
pub const SHARED_WINDOW: u64 = 1 << memory::REGION_BITS;
/// First generic address of local memory.
pub const LOCAL_WINDOW: u64 = 2 << memory::REGION_BITS;
/// First generic address of a kernel's parameters.
pub const PARAMETER_WINDOW: u64 = 3 << memory::REGION_BITS;
