//! Collectives among the devices of one process, and of several.

mod agrees;
mod cases;
mod contract;
mod failures;
mod moves;
mod platform;
mod processes;
mod programs;
mod repetitions;
mod sizes;
mod support;
