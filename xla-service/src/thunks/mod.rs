//! Thunks: a scheduled module with buffers as a list of launches, for backends that compile operation by operation.
//!
//! ```text
//! Module + BufferAssignment ─ ThunkSequence::from_module ─> ThunkSequence ─┬─ ThunkExecutable, thunk by thunk
//!                                  │ Lowering::lower                       └─ a backend's own code generator
//!                                  └ NotMine: HostFallback, or an error if the fallback is forbidden
//! ```
//!
//! The sequence is data: it can be printed, dumped, counted and traversed; the backend resolves each [`KernelRef`].
//! Instructions that only rename a value (tuples, their elements, bitcasts, calls) produce no thunk. Thunks are
//! launches, copies and control flow, each with the slices of memory that it reads and writes.
//!
//! - [`from_module`](ThunkSequence::from_module) builds the sequence with a [`Lowering`];
//! - [`BufferPlan`] determines the source of each memory, and [`ExecutionBuffers`] is the memory of one execution:
//!   arguments, donated or not, results, temporaries, constants;
//! - [`run_fallback`] runs one thunk on the host with the evaluator, and [`run_custom_call`] runs one with a custom
//!   call's handler;
//! - [`ThunkProgram`] combines all of this for one module, and [`ThunkExecutable`] is the
//!   [`Executable`](crate::Executable) of a backend that provides only a [`Launcher`];
//! - [`assign_streams`](streams::assign_streams) distributes the thunks over several [`streams`];
//! - [`DeviceLoops`] runs loops on the device without the host, for backends whose devices support it;
//! - [`Lowering::lower_loop`] compiles a whole loop to one kernel, if the backend supports it.

mod buffers;
mod build;
mod collective;
mod display;
mod executable;
mod execute;
mod fallback;
mod launcher;
mod library;
mod lowering;
mod plan;
mod program;
mod raw_call;
mod sequence;
pub mod streams;
#[cfg(test)]
mod tests;
mod whole_loop;

pub use buffers::ExecutionBuffers;
pub(crate) use collective::is_exchange;
pub use executable::ThunkExecutable;
pub use execute::execute;
pub use fallback::{evaluate_instruction, run_custom_call, run_fallback};
pub use launcher::{DeviceConditionals, DeviceLoops, Launch, Launcher, SequenceLauncher};
pub use library::{LibraryOp, LibraryRef};
pub use lowering::{LoopContext, LoopRounds, LoopStep, Lowered, Lowering, LoweringContext};
pub use plan::BufferPlan;
pub use program::ThunkProgram;
pub use sequence::{ArraySlice, Coverage, KernelRef, Selector, StreamId, Thunk, ThunkId, ThunkKind, ThunkSequence};
pub use streams::StreamPool;
