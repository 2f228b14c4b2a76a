//! Emulation of a GPU: kernels generated for the host's processor, run block by block.
//!
//! A kernel's function is called once for each thread. Threads that wait for each other or shuffle run as fibers, each
//! with a stack of its own, and are switched where they wait; so a block needs one thread of the host, and runs the
//! same way every time.

//!
//! Each command is done when it is sent; that it might have been done later, and in another order, is the business of a
//! race detector: it sees who waits for whom, and reports accesses that no event orders.

mod code;
mod executor;
mod faults;
mod fibers;
mod function;
mod launch;
mod platform;
mod processor;

pub(crate) use code::EmulatedCode;
use executor::EmulatedStream;
pub use platform::{emulated_platform, emulated_platform_with_way};
pub(crate) use processor::{check, compiled_for};
