//! Multistage matmuls on tensor cores: software pipelining with asynchronous copies (`cp.async`) into shared memory.
//!
//! Shared memory has several stages, each with some steps of K. While a block computes with one stage, the copies of
//! the next ones are in flight and need no registers. Rows of 16-byte chunks are stored as in the operand, and warps
//! load the fragments of four matrices at a time (`ldmatrix`). Chunks are permuted (XOR with bits of their row), so
//! that neither the eight rows of a matrix nor the chunks that threads write together have bank conflicts. Elements
//! beyond the end of K are zero. Operands that are computed, or whose rows are not multiples of a chunk, go through
//! registers: see `tile`.

pub(super) mod fit;
mod part;
pub(super) mod pipeline;
