//! Parser of StableHLO programs in MLIR's textual form, as JAX's `as_text()` and MLIR's printer write it: pretty and
//! generic forms.
//!
//! The parser fills the tables of a [`Module`] as the bytecode reader does. Attributes of StableHLO that hold several
//! numbers (`#stablehlo.gather<...>`) become the separate attributes of VHLO, and omitted attributes get VHLO's
//! defaults, so the lowering handles one form only. Aliases may be used before they are defined.

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

use crate::ir::{AttrId, Module, TypeId};

pub(crate) use defaults::normalized;

/// Reads a program.
///
/// Errors:
///
/// - `Error::InvalidArgument` for a syntax error; the message names line, column and the expected token.
/// - `Error::Unimplemented` for an operation, attribute or type that this parser does not know.
pub fn read(text: &str) -> Result<Module> {
    reader::Reader::new(text).module()
}

/// Parses an attribute that a program in another format stores as text, and adds it to `module`.
pub(crate) fn attribute_within(module: &mut Module, text: &str) -> Result<AttrId> {
    let mut reader = reader::Reader::within(std::mem::take(module), text);
    let id = reader.whole(reader::Reader::attribute);
    *module = reader.module;
    id
}

/// Parses a type that a program in another format stores as text, and adds it to `module`.
pub(crate) fn type_within(module: &mut Module, text: &str) -> Result<TypeId> {
    let mut reader = reader::Reader::within(std::mem::take(module), text);
    let id = reader.whole(reader::Reader::ty);
    *module = reader.module;
    id
}
