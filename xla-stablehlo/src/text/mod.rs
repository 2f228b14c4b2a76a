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

use crate::ir::{AttrId, Module, TypeId};

pub(crate) use defaults::normalized;

/// Reads a program.
///
/// `Error::InvalidArgument` with line, column and the expected token for text that breaks the grammar;
/// `Error::Unimplemented` for an operation, attribute or type that this reader does not know.
pub fn read(text: &str) -> Result<Module> {
    reader::Reader::new(text).module()
}

/// Reads an attribute of a program that is stored in another form, and adds it to the module.
pub(crate) fn attribute_within(module: &mut Module, text: &str) -> Result<AttrId> {
    let mut reader = reader::Reader::within(std::mem::take(module), text);
    let id = reader.whole(reader::Reader::attribute);
    *module = reader.module;
    id
}

/// Reads a type of a program that is stored in another form, and adds it to the module.
pub(crate) fn type_within(module: &mut Module, text: &str) -> Result<TypeId> {
    let mut reader = reader::Reader::within(std::mem::take(module), text);
    let id = reader.whole(reader::Reader::ty);
    *module = reader.module;
    id
}
