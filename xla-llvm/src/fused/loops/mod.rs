//! Loops around elements: the loop nest of a kernel, and indices in terms of its symbols.

pub mod affine;
pub(crate) mod frame;
pub(crate) mod nest;
pub(crate) mod plan;
pub(crate) mod range;
mod trial;
pub(crate) mod variables;
