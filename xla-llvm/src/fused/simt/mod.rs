//! Kernels for SIMT targets: GPUs, and their emulation on the host.

pub(crate) mod attention;
pub(crate) mod block_loop;
pub(crate) mod block_thread;
pub(crate) mod elementwise;
pub(crate) mod group_reduce;
mod load_batch;
pub(crate) mod matmul;
mod pipeline;
pub(crate) mod radix;
pub(crate) mod random_counter;
mod register_row;
pub(crate) mod row_reduce;
pub(crate) mod row_shape;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod small_matrix;
pub(crate) mod sort;
pub(crate) mod thread_group;
pub(crate) mod tma_operand;
pub(crate) mod top_k;
pub(crate) mod transpose;
