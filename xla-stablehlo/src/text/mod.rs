//! MLIR text of StableHLO programs, as JAX's `as_text()` and MLIR's printer write it: pretty and generic forms.
//!
//! The reader fills the tables of a [`Module`] as the bytecode reader does: attributes of StableHLO that hold several
//! numbers (`#stablehlo.gather<...>`) become the separate attributes of VHLO, and attributes that the text leaves out
//! get VHLO's defaults, so that the lowering sees one form. Aliases may be used before they are defined.

mod attributes;
mod cursor;
mod defaults;
mod dense;
mod dialect;
mod formats;
mod locations;
mod operations;
mod reader;
mod regions;
mod sharding;
mod special;
mod types;

use xla_hlo::Result;

use crate::ir::Module;

/// Reads a program.
///
/// `Error::InvalidArgument` with line, column and the expected token for text that breaks the grammar;
/// `Error::Unimplemented` for an operation, attribute or type that this reader does not know.
pub fn read(text: &str) -> Result<Module> {
    reader::Reader::new(text).module()
}
