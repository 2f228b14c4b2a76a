//! Kernels for CPUs with vector registers: blocks transposed in registers, column reductions, vector-matrix products,
//! rows kept in the cache, operands of concatenations, Fourier transforms.

pub(crate) mod column_reduce;
pub(crate) mod fft;
pub(crate) mod loops;
pub(crate) mod operand_loops;
pub(crate) mod row_cache;
pub(crate) mod transpose;
pub(crate) mod vector_matrix;
