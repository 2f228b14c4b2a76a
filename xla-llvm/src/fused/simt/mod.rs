//! Kernels for SIMT targets: GPUs, and their emulation on the host.

pub(crate) mod attention;
pub(crate) mod block_loop;
pub(crate) mod block_member;
pub(crate) mod bulk_operand;
pub(crate) mod elementwise;
pub(crate) mod group_reduce;
mod group_turns;
pub(crate) mod matmul;
pub(crate) mod radix;
pub(crate) mod row_reduce;
mod row_turns;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod small_matrix;
pub(crate) mod sort;
mod stage;
pub(crate) mod thread_group;
pub(crate) mod top_k;
pub(crate) mod transpose;
