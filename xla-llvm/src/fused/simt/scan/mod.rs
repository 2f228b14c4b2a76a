//! Scans by blocks of threads: running totals of whole fibers, or of tiles of them where there are few and long ones.
//!
//! ```text
//! plan.rs      which blocks there are, and what they share
//! emit.rs      the kernels
//!   block.rs   a block of threads: their elements, what is before each of them
//!   fiber.rs   a block goes along a fiber in turns, with the total so far
//!   tile.rs    a block scans a tile, and asks the blocks of earlier tiles for what is before it
//!   state.rs   the words by which these tell each other
//! ```

mod block;
mod emit;
mod fiber;
pub(crate) mod plan;
mod state;
mod tile;
