//! Emulation of a GPU: kernels generated for the host's processor, run block by block.
//!
//! A kernel's function is called once for each thread. Threads that use barriers or shuffles run as fibers, each with
//! its own stack, and are switched when they wait. So a block needs one host thread, and its execution is
//! deterministic.

//!
//! Each command is done when it is sent, but a GPU may execute it later and in another order. A race detector therefore
//! records the events that streams wait for, and reports accesses that no event orders.

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
