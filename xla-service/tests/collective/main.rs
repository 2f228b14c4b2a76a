//! Collectives among the devices of one process.

mod agrees;
mod cases;
mod failures;
mod moves;
mod platform;
mod programs;
mod repetitions;
mod sizes;
mod support;
