//! Collectives among the GPUs of this process, by NCCL on the streams of the devices.
//!
//! ```text
//! member: addresses, steps, stream ─┐
//! member: addresses, steps, stream ─┼─ host meeting ── rank 0 sends the steps of all in one group ── host meeting
//! member: addresses, steps, stream ─┘                                                                   │
//!                                                           end of the run: each device waits for its work
//! ```
//!
//! One thread sends the work of all members while it holds one lock, so all devices receive all collectives in one
//! order, also those of different programs. A collective also waits for the previous one of its device. The members
//! have met before, so no stream waits for a member that fails on the host. Work that does not end nevertheless is
//! aborted when the run fails or is cancelled, when NCCL reports an error, or after the run's time-out. Before the host
//! waits for a stream, it waits for the run's collectives in this way.

mod cliques;
pub(crate) mod communicators;
mod lock;
mod meeting;
mod member;
mod progress;
mod waiting;
mod work;

pub(crate) use cliques::Collectives;
pub(crate) use member::execute;
pub(crate) use waiting::{finish, wait};
