//! Scatters by many threads: one for each element of the updates, or, where updates meet in order, for each place.

pub(crate) mod means;
mod order;
pub(crate) mod plan;
mod threads;
