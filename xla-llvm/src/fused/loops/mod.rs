//! Loops around elements: which a kernel has, how they nest, and what its indices are in terms of them.

pub mod affine;
pub(crate) mod frame;
pub(crate) mod nest;
pub(crate) mod plan;
pub(crate) mod range;
mod trial;
pub(crate) mod variables;
