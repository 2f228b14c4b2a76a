//! Top-k: the best elements of rows, in order.
//!
//! ```text
//! plan.rs       the launches, and their functions
//! pick.rs       very small k: a thread group picks the elements one at a time
//! select.rs     larger k: a block finds the k-th element by radix selection, then sorts the best ones
//! sorted.rs     items in shared memory, and their sort
//! ```

mod pick;
pub(crate) mod plan;
mod select;
mod sorted;
