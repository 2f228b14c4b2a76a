//! StableHLO programs: portable artifacts as JAX and PyTorch write them, without MLIR.
//!
//! - [`ir`]: a program in memory: operations, regions, values, attributes and types in flat tables.
//! - [`bytecode`]: the MLIR bytecode container, and the encodings of the dialects that artifacts and programs hold
//!   (`builtin`, `vhlo`, `sdy`, `stablehlo`, `chlo`).
//! - [`text`]: the same programs as MLIR prints them.
//! - [`lower()`]: the program as an HLO module.
//! - [`refine()`]: the same for a program with dynamic dimensions, for given shapes of its arguments.

#![warn(missing_docs)]

pub mod bytecode;
pub mod ir;
mod lower;
mod refine;
pub mod text;

pub use lower::{lower, refine};
pub use refine::ArgumentShapes;

/// Reads a portable artifact and lowers it to HLO.
///
/// Errors are those of [`bytecode::read`] and [`lower()`].
pub fn parse_bytecode(bytes: &[u8]) -> xla_hlo::Result<xla_hlo::Module> {
    lower(&bytecode::read(bytes)?)
}

/// Reads MLIR text and lowers it to HLO.
///
/// Errors are those of [`text::read`] and [`lower()`].
pub fn parse_text(text: &str) -> xla_hlo::Result<xla_hlo::Module> {
    lower(&text::read(text)?)
}
