//! Thunks: a scheduled module with buffers as a list of launches, for backends that work operation by operation.
//!
//! ```text
//! Module + BufferAssignment ─ ThunkSequence::from_module ─> ThunkSequence ─┬─ ThunkExecutable, thunk by thunk
//!                                  │ Lowering::lower                       └─ a backend's own code generator
//!                                  └ "not mine": HostFallback, or an error where that is forbidden
//! ```
//!
//! The sequence is data: it can be printed, dumped, counted and walked; the backend resolves each [`KernelRef`].
//! Instructions that only rename a value (tuples, their elements, bitcasts, calls) make no thunk. Thunks are launches,
//! copies and control flow, each with the slices of memory that it reads and writes.
//!
//! - [`from_module`](ThunkSequence::from_module) builds it, asking a [`Lowering`];
//! - [`BufferPlan`] knows where memory comes from, [`ExecutionBuffers`] is the memory of one execution: arguments,
//!   donated or not, results, temporaries, constants;
//! - [`run_fallback`] runs one thunk on the host, through the evaluator; [`run_custom_call`] through a custom call's
//!   handler;
//! - [`ThunkProgram`] is all of this for one module, and [`ThunkExecutable`] the [`Executable`](crate::Executable) of a
//!   backend that has nothing but a [`Launcher`];
//! - [`assign_streams`](streams::assign_streams) spreads it over several [`streams`];
//! - [`DeviceLoops`] are loops that the device runs without asking the host, for backends whose devices can;
//! - [`Lowering::lower_loop`] makes one kernel of a whole loop, where the backend wants to.

mod buffers;
mod build;
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
