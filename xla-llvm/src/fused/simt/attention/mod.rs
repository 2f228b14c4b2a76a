//! Attention: a block has a tile of queries, and goes through all keys and values; or a few queries, and a part of them.
//!
//! ```text
//! plan.rs     which kernels are attentions, and the sizes of their tiles
//! shape.rs    where the rows of a tile lie in shared memory
//! operand.rs  tiles of queries, keys and values in shared memory: copies, and the fragments of a thread
//! logits.rs   all that is computed between scores and the softmax
//! online.rs   the softmax of a row of which one tile after the other is known
//! emit.rs     the loop over keys
//! decode/     few queries, by threads rather than tensor cores
//! ```
//!
//! The scheme is that of Dao, FlashAttention-2 (2023), with the softmax of Milakov and Gimelshein, Online normalizer
//! calculation for softmax (2018): scores are in registers, where each warp has whole rows of them, and what was summed
//! so far is scaled whenever a row's largest score grows.

pub(crate) mod decode;
mod emit;
mod logits;
mod online;
mod operand;
pub(crate) mod plan;
mod shape;
