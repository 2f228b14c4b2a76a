//! Warp-specialized matmuls: `wgmma` consumer groups, with operands that TMA copies to shared memory.
//!
//! One thread of a producer warp (or warp group) starts the copies. Shared memory has several stages, each with some
//! steps of K. mbarriers signal when a stage is filled, and when all consumers have released it. Consumer threads
//! therefore never compute an operand's address or wait for another group. This is the warp specialization of Bauer,
//! Cook and Khailany (CudaDMA: optimizing GPU memory bandwidth via warp specialization, 2011).

pub(super) mod fit;
pub(super) mod pipeline;
