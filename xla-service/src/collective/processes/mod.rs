//! Engine for the devices of several processes, over any [`Transport`] of bytes.
//!
//! ```text
//! process 0   device 0 ─ arrive ┐                    ┌─ header: spec, arguments, small operands ─> process 1, 2
//!             device 1 ─ arrive ┴─ last one: exchange┼─ operands that the receivers need ────────> process 1, 2
//! process 1   device 2 ─ arrive ── last one: exchange┤<─ theirs
//! process 2   device 3 ─ ...                         └─ tasks of the in-process engine on all operands
//! ```
//!
//! - The members of a process meet as in [`InProcess`](super::InProcess). The last to arrive exchanges headers with
//!   every other process of the group, so that no process is more than one collective ahead of another.
//! - A header names the spec: processes that execute different collectives fail with an error that names both.
//! - The transport moves bytes only. Reductions run here, in the order of the ranks, so results equal those of
//!   `xla_hlo::eval::grid` bit for bit, for every element type and combiner.
//! - Large all-reduces are cut into slots, each reduced by one process, which sends the result to the others
//!   (`all_reduce.rs`). All other operations receive the operands of the members in other processes, or the parts of
//!   them that local members need (`segments.rs`), and then execute the tasks of the in-process engine.
//! - The failure of a clique is a failure of its run, in all processes: the first error is sent to each of them.

mod all_reduce;
mod clique;
mod engine;
mod exchange;
mod execute;
mod header;
mod hub;
mod in_memory;
mod job;
mod local_work;
mod mailbox;
mod operands;
mod pieces;
mod route;
mod run_table;
mod segments;
mod slots;
mod tcp;
mod transport;
mod waiting;
mod wire_error;

pub use engine::Processes;
pub use in_memory::InMemory;
pub use tcp::Tcp;
pub use transport::{Inbox, Message, MessageId, Progress, Transport};
