//! Execution of collective instructions by the operations of the engine.
//!
//! ```text
//! all-reduce, groups, shapes ── lower() ─┬─ CollectiveSpec ── Communicator::run: one pass over the memory of all
//!                                        └─ Gathering ─────── all-gather of the operands, then every member computes
//!                                                             the results of all, as the evaluator over a grid
//! ```
//!
//! A [`MemberPlan`] is constant for an instruction and a device, and is derived once per program ([`CollectivePlans`]).
//! All members of a group derive the same operation, since it depends only on the program.

mod arguments;
mod gathering;
mod instruction;
mod lower;
mod on_device;
mod plan;
mod plans;

pub use gathering::Gathering;
pub(crate) use instruction::{ArrayForm, Instruction};
pub use on_device::OnDevice;
pub(crate) use plan::MemberPlan;
pub(crate) use plans::CollectivePlans;
pub use plans::PlannedCollective;
