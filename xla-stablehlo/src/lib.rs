//! Reader and lowering of StableHLO programs, such as the portable artifacts of JAX and PyTorch, without MLIR.
//!
//! - [`ir`]: in-memory program with operations, regions, values, attributes and types in flat tables.
//! - [`bytecode`]: reader of the MLIR bytecode container and of its dialects (`builtin`, `vhlo`, `sdy`, `stablehlo`,
//!   `chlo`).
//! - [`text`]: parser of MLIR's textual form.
//! - [`lower()`]: lowering to an HLO module.
//! - [`refine()`]: lowering of a program with dynamic dimensions, for given argument shapes.

#![warn(missing_docs)]

pub mod bytecode;
#[doc(hidden)]
pub mod internals;
pub mod ir;
mod lower;
mod refine;
pub mod text;

pub use lower::{lower, refine};
pub use refine::ArgumentShapes;

/// Reads a portable artifact and lowers it to HLO.
///
/// Returns the errors of [`bytecode::read`] and [`lower()`].
pub fn parse_bytecode(bytes: &[u8]) -> xla_hlo::Result<xla_hlo::Module> {
    lower(&bytecode::read(bytes)?)
}

/// Reads MLIR text and lowers it to HLO.
///
/// Returns the errors of [`text::read`] and [`lower()`].
pub fn parse_text(text: &str) -> xla_hlo::Result<xla_hlo::Module> {
    lower(&text::read(text)?)
}
