//! A backend for hardware without LLVM, written as a starting point for vendors: a complete implementation for a
//! simulated accelerator.
//!
//! ```text
//! platform.rs       creates compiler, executors and transfer manager; reports the number of devices
//! capabilities.rs   name of the platform; tiles, fusible operations, costs                ─> passes
//! compiler.rs       runs the passes, builds thunks, loads serialised programs
//! lowering/         compiles one instruction to one device program; the host runs the rest
//! executable.rs     launches kernels and runs loops on the device
//! executor.rs       memory, streams, events
//! transfer.rs       copies values between the host and the device's tiles
//! device/           the simulated hardware and its driver; a vendor has these already
//! ```
//!
//! To port the backend, replace `device/` with the real driver's library. Then follow the tags: below each line
//! `// VENDOR(topic): what to do` is an item that the vendor adapts; all other code can stay. `lowering` may start by
//! returning `NotMine` for every instruction: the reference evaluator then computes each of them on the host, and every
//! program runs from the first day. Move operations to the device one at a time, each with its function and its test;
//! see `lowering/mod.rs`.
//!
//! Hardware with its own graph compiler takes whole modules instead; see `examples/whole_graph.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod capabilities;
mod compiler;
pub mod device;
mod executable;
mod executor;
mod lowering;
mod platform;
mod transfer;

pub use capabilities::NAME;
pub use platform::{DeviceOptions, platform, platform_with};
