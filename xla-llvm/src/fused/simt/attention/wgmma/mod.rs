//! Warp-specialized attention: each consumer group computes 64 queries with `wgmma`, and a
//! [`Pipeline`](crate::fused::simt::pipeline::Pipeline) loads keys and values by TMA.
//!
//! Scores and results are `wgmma` accumulators; exponentials are left operands in registers. While one group computes
//! exponentials, another one multiplies. The scheme is that of Shah et al., FlashAttention-3 (2024), without its
//! overlap within a group.

mod emit;
pub(crate) mod plan;
