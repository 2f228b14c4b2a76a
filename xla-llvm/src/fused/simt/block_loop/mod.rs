//! Loops of small steps as one kernel with one block.
//!
//! Phases replace launches. In a phase the block's threads compute its elements together. A barrier precedes a phase
//! that reads data from other threads. Arrays stay in their buffers in global memory; small ones stay in the
//! multiprocessor's L1 cache. All threads read the predicate, so that control flow is uniform.

mod cost;
mod emit;
pub(crate) mod phase;
pub(crate) mod plan;
