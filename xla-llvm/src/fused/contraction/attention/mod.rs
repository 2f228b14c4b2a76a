//! Attention: two GEMMs with a softmax between them; for CPUs with vectors, in blocks of keys with register tiles.
//!
//! ```text
//! kernel.rs    parts of an attention, and its dots; also used by `simt`
//! function.rs  elementwise functions of scores; also used by `simt`
//! plan.rs      blocks of keys, runs of queries, and the register tiles of both GEMMs
//! emit.rs      the loop nest: blocks of keys, tiles of queries
//! tile.rs      one tile of queries and one block of keys: scores, softmax, products with the values
//! online.rs    online softmax of the rows of a tile
//! ```
//!
//! Scores exist only for one tile of queries and one block of keys, in the L1 cache. Earlier sums are rescaled when a
//! row's largest logit grows (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).

mod emit;
pub(crate) mod function;
pub(crate) mod kernel;
mod online;
pub(crate) mod plan;
mod tile;
