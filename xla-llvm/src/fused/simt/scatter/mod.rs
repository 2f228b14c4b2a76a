//! Scatters by many threads: one for each element of the updates, or, where updates meet in order, for each place.
//! Where many updates go to few places, blocks have copies of the arrays.

mod block_copies;
mod combine;
mod copies;
pub(crate) mod means;
mod order;
pub(crate) mod plan;
mod threads;
