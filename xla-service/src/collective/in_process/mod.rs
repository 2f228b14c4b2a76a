//! Engine for the devices of one process, which access each other's memory.
//!
//! ```text
//! member 0  arrive ── wait ─────────── execute tasks ─┐
//! member 1  arrive ── wait ── (asleep) ───────────────┼─ return      the last one to arrive publishes the job;
//! member 2             arrive, publish, execute tasks ┘              all that are awake claim tasks
//! ```
//!
//! - Members publish addresses; no data is copied into buffers of the engine, except blocks of reduced elements.
//! - A collective ends when all tasks are done. A member that has not woken up yet delays nobody.
//! - If all tasks together are small, the last member to arrive executes them and wakes the others once.
//! - Waiting threads spin briefly if each member has a core of its own, and then sleep.

mod clique;
mod engine;
mod group;
mod job;
mod memory;
mod plan;
mod ragged;
mod report;
mod slices;
mod tasks;
mod waiting;
mod work;

pub(super) use clique::Clique;
pub use engine::InProcess;
pub(super) use group::{Group, Locations};
pub(super) use job::{Job, LocalJob, Member, caught, check_arguments, common_spec};
pub(super) use memory::{Access, MemberMemory, Memory, Place};
pub(super) use report::timeout;
pub(super) use work::Work;
