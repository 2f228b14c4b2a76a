//! Scans by blocks of threads: running totals of whole fibers, or of tiles if there are few, long fibers.
//!
//! ```text
//! plan.rs      number of blocks, and the memory they share
//! emit.rs      the kernels
//!   block.rs   a block of threads: elements, and prefixes over threads
//!   fiber.rs   a block scans a fiber, in iterations that carry the total
//!   tile.rs    a block scans a tile, and waits for the totals of earlier tiles
//!   state.rs   the words through which blocks communicate
//! ```

mod block;
mod emit;
mod fiber;
pub(crate) mod plan;
mod state;
mod tile;
