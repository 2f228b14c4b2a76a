//! Kernels for processors with vector registers: blocks that are transposed, columns, vectors times matrices, rows that
//! are kept.

pub(crate) mod column_reduce;
pub(crate) mod loops;
pub(crate) mod row_cache;
pub(crate) mod transpose;
pub(crate) mod vector_matrix;
