//! Attention on tensor cores: a block has a tile of queries and loops over all keys and values. Attention of few
//! queries (decoding) is computed by threads, each with some keys.
//!
//! ```text
//! plan.rs     attention kernels, and the sizes of their tiles
//! shape.rs    layout of a tile's rows in shared memory
//! operand.rs  tiles of queries, keys and values in shared memory: copies, and the fragments of a thread
//! online.rs   online softmax of a row
//! function.rs elementwise functions of scores at a thread's positions in a tile
//! rows.rs     a thread's two rows: the softmax state, and the results
//! products.rs products of tiles on tensor cores
//! emit.rs     the main loop over keys
//! backward_plan.rs kernels that sum functions of scores, such as gradients, and the sizes of their tiles
//! backward_emit.rs the main loop over columns of such a sum
//! groups/     warp-specialized attention with `wgmma`
//! decode/     few queries, by threads rather than tensor cores
//! ```
//!
//! The scheme is that of Dao, FlashAttention-2 (2023), with the softmax of Milakov and Gimelshein, Online normalizer
//! calculation for softmax (2018): scores are in registers, where each warp has whole rows of them, and earlier sums
//! are rescaled whenever a row's largest score grows.

mod backward_emit;
pub(crate) mod backward_plan;
pub(crate) mod decode;
mod emit;
mod function;
mod online;
mod operand;
pub(crate) mod plan;
mod products;
mod rows;
mod shape;
pub(crate) mod wgmma;
