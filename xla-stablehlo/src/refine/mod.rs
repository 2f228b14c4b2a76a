//! Refinement: the lowering of programs with dynamic dimensions for given shapes of the arguments.
//!
//! The lowering infers the shape of each operation from its operands, folds the sizes that a program computes from the
//! shapes of its arguments, and lowers functions once for each list of shapes and sizes that they are called with.

mod arguments;
mod dynamic;

pub use arguments::ArgumentShapes;
pub(crate) use dynamic::dynamic_functions;
