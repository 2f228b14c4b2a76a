//! Tiles of matmuls on tensor cores whose operands come into shared memory by asynchronous copies.
//!
//! Shared memory has several stages, each of some steps of K: while a block computes with one, the next ones are on
//! their way, and no thread's registers are needed for them. Rows of 16-byte chunks lie there as in the operand, and
//! warps load fragments of four matrices at a time; chunks are permuted (XOR) by their row, so that the eight rows of a
//! matrix, and the chunks that threads write together, lie in different banks. Beyond the end of K there are zeros.
//! Operands that are computed, or whose rows are no multiples of a chunk, go through registers: see `tile`.

pub(super) mod fit;
mod part;
pub(super) mod pipeline;
