//! A backend for hardware without LLVM, made to be forked: everything a backend needs, for an accelerator that is
//! simulated.
//!
//! ```text
//! platform.rs       names the parts; how many devices there are
//! capabilities.rs   the platform's name; tiles, and what may be fused                   ─> passes
//! compiler.rs       passes, then thunks: one kernel for each instruction that is lowered
//! lowering/         one instruction -> one program of the device; the rest runs on the host
//! executable.rs     starts kernels, hands loops to the device; programs serialised and loaded
//! executor.rs       memory, streams, events
//! transfer.rs       values to and from the device's tiles
//! device/           the simulated hardware and its driver: what a vendor has already
//! ```
//!
//! A vendor replaces `device/` by the real driver's library, and then follows the tags: the item below each line
//! `// VENDOR(topic): what to do` is the vendor's to change, and everything else may stay. In the first hour `lowering`
//! says "not mine" to every instruction: the reference evaluator computes them on the host, and every program runs.
//! Then operations move to the device one at a time, each a function and a test; see `lowering/mod.rs`.
//!
//! Hardware with a graph compiler of its own takes whole modules instead: see `examples/whole_graph.rs`.

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
