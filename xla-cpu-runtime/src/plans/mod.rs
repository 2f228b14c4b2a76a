//! Plans of library calls: shapes and layouts as loops and strides, split into chunks for threads.

pub(crate) mod chunks;
pub(crate) mod convolution;
pub(crate) mod dot;
pub(crate) mod sort;
