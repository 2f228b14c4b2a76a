//! Loops of small steps as one kernel of one block.
//!
//! Instead of launches there are *phases*: the block's threads compute the elements of a phase, each some, and wait
//! for each other where the next one reads what they wrote. Arrays stay in the memory that they have anyway; those of
//! small loops are in the first-level cache of the multiprocessor. All threads look at the predicate and go on alike.

mod cost;
mod emit;
pub(crate) mod phase;
pub(crate) mod plan;
