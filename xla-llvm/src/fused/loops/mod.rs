//! Loops around elements: the loop nest of a kernel, and indices in terms of its symbols.

pub(crate) mod accesses;
pub mod affine;
mod choice;
pub(crate) mod frame;
pub(crate) mod nest;
pub(crate) mod plan;
pub(crate) mod pointer_table;
pub(crate) mod range;
pub(crate) mod variables;
