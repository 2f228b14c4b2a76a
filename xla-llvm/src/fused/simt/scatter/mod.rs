//! Scatters by many threads: one per element of the updates, or one per destination if colliding updates must be
//! applied in order. Many updates to few destinations are combined in copies of the arrays in shared memory.

pub(crate) mod block_copies;
mod combine;
mod copies;
pub(crate) mod in_order;
pub(crate) mod means;
mod order;
pub(crate) mod plan;
mod threads;
