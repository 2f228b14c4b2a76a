//! Attention: a block has a tile of queries, and goes through all keys and values; or few queries, and some keys.
//!
//! ```text
//! plan.rs     which kernels are attentions, and the sizes of their tiles
//! shape.rs    where the rows of a tile lie in shared memory
//! operand.rs  tiles of queries, keys and values in shared memory: copies, and the fragments of a thread
//! online.rs   the softmax of a row of which one tile after the other is known
//! function.rs elementwise functions of scores at a thread's places in a tile
//! rows.rs     a thread's two rows: the softmax so far, and the results
//! products.rs products of tiles on tensor cores
//! emit.rs     the loop over keys
//! sum_plan.rs which kernels are sums over functions of scores, such as gradients, and the sizes of their tiles
//! sum_emit.rs the loop over columns of such a sum
//! groups/     tiles of queries by warp groups
//! decode/     few queries, by threads rather than tensor cores
//! ```
//!
//! The scheme is that of Dao, FlashAttention-2 (2023), with the softmax of Milakov and Gimelshein, Online normalizer
//! calculation for softmax (2018): scores are in registers, where each warp has whole rows of them, and what was summed
//! so far is scaled whenever a row's largest score grows.

pub(crate) mod decode;
mod emit;
mod function;
pub(crate) mod groups;
mod online;
mod operand;
pub(crate) mod plan;
mod products;
mod rows;
mod shape;
mod sum_emit;
pub(crate) mod sum_plan;
