//! Warp-specialized matmuls: `wgmma` consumer groups read operands from the stages of a
//! [`Pipeline`](crate::fused::simt::pipeline::Pipeline), each with some steps of K.

pub(super) mod fit;
pub(super) mod tile;
