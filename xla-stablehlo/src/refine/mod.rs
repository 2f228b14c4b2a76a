//! Refinement: the lowering of programs with dynamic dimensions for given argument shapes.
//!
//! The lowering infers the shape of each operation from its operands and folds sizes that the program computes from the
//! shapes of its arguments. It lowers a function once for each distinct list of argument shapes and sizes.

mod arguments;
mod dynamic;

pub use arguments::ArgumentShapes;
pub(crate) use dynamic::dynamic_functions;
