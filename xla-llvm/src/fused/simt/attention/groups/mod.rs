//! Attention by warp groups: each has 64 queries; keys and values come into shared memory in bulk, which a thread of a
//! warp of its own begins.
//!
//! Scores and results are sums of warp groups' products; exponentials are left factors in registers. While a group
//! computes exponentials another one multiplies. The scheme is that of Shah et al., FlashAttention-3 (2024), without
//! its overlap within a group.

mod emit;
pub(crate) mod plan;
