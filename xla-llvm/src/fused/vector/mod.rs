//! Kernels for processors with vector registers: blocks that are transposed, columns, rows that are kept.

pub(crate) mod column_reduce;
pub(crate) mod loops;
pub(crate) mod row_cache;
pub(crate) mod transpose;
