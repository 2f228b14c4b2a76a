//! Device: memory, and kernels that run in it, one block after another.
//!
//! ```text
//! memory   allocations at addresses of their own, which are never used again
//!   store    bytes, which of them were written, and who touched them last (shadow)
//! grid     blocks one after another
//!   block    threads, each of which runs until it must wait; reach: the memory that they touch; copies: what is under
//!            way to shared memory
//!     warp     what lanes do together; mma: matrices
//! ```

mod block;
mod copies;
mod grid;
mod launch;
mod memory;
mod mma;
mod pending;
mod reach;
mod shadow;
mod store;
mod warp;

pub use grid::launch;
pub use launch::{Launch, Outside};
pub use memory::Memory;

/// First generic address of shared memory.
pub const SHARED_WINDOW: u64 = 1 << memory::REGION_BITS;
/// First generic address of local memory.
pub const LOCAL_WINDOW: u64 = 2 << memory::REGION_BITS;
