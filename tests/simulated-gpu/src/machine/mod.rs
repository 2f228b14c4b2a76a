//! Device: memory, and kernels that run in it, one block after another.
//!
//! ```text
//! memory   allocations at addresses of their own, which are never used again
//!   store    bytes, which of them were written, and who touched them last (shadow)
//! grid     blocks one after another
//!   block    threads, each of which runs until it must wait; reach: the memory that they touch; copies: what is under
//!            way to shared memory; marks: registers that products are to write
//!     warp     what lanes do together; mma: matrices
//!       warp_group   wgmma, whose factors are in shared memory as a descriptor says
//!     requests       barriers in shared memory (mbarrier), and copies of boxes of tensors that they are told of (bulk,
//!                    tensor_map)
//!     order    who knows what of whom by all of these
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
