//! Collectives: communication among the devices of one launch.
//!
//! ```text
//! device 0 ── CollectiveCall ─┐                              CollectiveRun    one launch; a failure aborts it
//! device 1 ── CollectiveCall ─┼─ Communicator::run(rank)     CliqueKey        run + instruction + member devices
//! device 2 ── CollectiveCall ─┘                              CollectiveSpec   operation, types and sizes (constant)
//! ```
//!
//! - A [`CollectiveEngine`] creates communicators. Engines differ in the transport: memory of one process, MPI, NCCL.
//! - A [`Communicator`] executes the collectives of one [`CliqueKey`]: each member calls [`Communicator::run`] with its
//!   rank, its operands ([`Source`]) and its results ([`Target`]). Calls of the same number execute together.
//! - A [`CollectiveRun`] is one launch over several devices. If a device fails or panics, it aborts the collectives of
//!   all others.
//!
//! **Determinism.** Reductions combine each element in the order of the ranks, starting with rank 0, and round after
//! each step to the accumulator's type, as `xla_hlo::eval::grid` does. Results depend neither on the order of arrival
//! nor on the number of threads. The payload of a NaN is unspecified if several members contribute a NaN.
//!
//! **Waiting.** Members wait for each other, so each needs its own thread. A member that waits longer than
//! [`Timeouts::end`] ends with an error that names the instruction and the missing devices.

mod call;
mod engine;
mod in_process;
mod key;
mod member;
mod operation;
pub mod processes;
mod reducer;
mod reducers;
mod reduction;
mod region;
mod run;

pub use call::{CollectiveCall, MemberArguments, RowMove};
pub use engine::{CollectiveEngine, Communicator, Timeouts};
pub use in_process::InProcess;
pub use key::{CliqueKey, InstructionKey, LaunchCounts, RunKey};
pub(crate) use member::{ArrayForm, CollectivePlans, Instruction, MemberPlan};
pub use member::{Gathering, OnDevice, PlannedCollective};
pub use operation::{CollectiveSpec, Operation, Part, SlicePair};
pub use reducer::Reducer;
pub use reduction::Reduction;
pub use region::{Source, Target};
pub use run::CollectiveRun;
