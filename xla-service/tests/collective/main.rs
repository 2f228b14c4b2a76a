//! Collectives among the devices of one process.

mod agrees;
mod cases;
mod failures;
mod repetitions;
mod sizes;
mod support;
