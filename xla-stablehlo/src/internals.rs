//! Tables and the reader of bytecode, which the program in `tests` checks on their own. Not a stable interface.
//!
//! This library has no unit tests, so that Cargo compiles it once. Prefer a test of a program; export an item here only
//! if no small program shows its behavior.

pub use crate::bytecode::reader::{Reader, TableSizes};
pub use crate::ir::forms::LEFT_OUT;
pub use crate::ir::forms::properties::PROPERTIES;
