//! Tiles of matmuls that warp groups multiply, whose operands come into shared memory in bulk.
//!
//! A thread of a warp of its own begins the copies: shared memory has several stages, each of some steps of K.
//! Barriers with phases say when a stage is there, and when nobody multiplies with it any more. So no thread that
//! multiplies ever computes an address of an operand, or waits for another group. The division of labour is that of
//! Bauer, Cook and Khailany (CudaDMA: optimizing GPU memory bandwidth via warp specialization, 2011).

pub(super) mod fit;
pub(super) mod pipeline;
