//! Kernels that process some dimensions in order and are independent along the others.

mod copy;
pub(crate) mod fibers;
mod row_sort;
pub(crate) mod scalar_loop;
pub(crate) mod scan;
pub(crate) mod scatter;
mod select_scatter;
pub(crate) mod sort;
