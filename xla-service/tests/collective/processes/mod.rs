//! Collectives among the devices of several processes. Each process is an engine of its own; messages are delayed and
//! reordered at random.

mod agrees;
mod cluster;
mod failures;
mod lossy;
mod repetitions;
mod sizes;
mod transports;
