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
//! aborted when the run fails or is cancelled, or when NCCL reports an error.

mod cliques;
pub(crate) mod communicators;
mod member;
mod pending;
mod waiting;

pub(crate) use cliques::Collectives;
pub(crate) use member::execute;
