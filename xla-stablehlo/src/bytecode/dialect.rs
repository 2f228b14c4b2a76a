//! The dialects of StableHLO programs, each with its encoding of attributes and types.

use xla_hlo::Result;

use super::reader::Reader;
use super::{builtin, sdy, stablehlo, vhlo};
use crate::ir::{Attribute, Module, Type};

/// MLIR dialect, as far as this reader distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Builtin,
    Vhlo,
    Sdy,
    Stablehlo,
    Chlo,
    /// Dialect that is unknown here, or of which only the operation names are used.
    Other,
}

impl Dialect {
    pub fn from_name(name: &[u8]) -> Dialect {
        match name {
            b"builtin" => Dialect::Builtin,
            b"vhlo" => Dialect::Vhlo,
            b"sdy" => Dialect::Sdy,
            b"stablehlo" => Dialect::Stablehlo,
            b"chlo" => Dialect::Chlo,
            _ => Dialect::Other,
        }
    }

    /// Returns the dialect's name, or `None` if its encoding is unknown here.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Dialect::Builtin => Some("builtin"),
            Dialect::Vhlo => Some("vhlo"),
            Dialect::Sdy => Some("sdy"),
            Dialect::Stablehlo => Some("stablehlo"),
            Dialect::Chlo => Some("chlo"),
            Dialect::Other => None,
        }
    }

    /// Decodes an attribute. The types of `module` determine the widths of numbers. Parts of a compound attribute that
    /// have no number in the file are appended to the attributes of `module`.
    pub fn attribute(self, r: &mut Reader<'_>, module: &mut Module) -> Result<Attribute> {
        match self {
            Dialect::Builtin => builtin::attribute(r, &module.types),
            Dialect::Vhlo => vhlo::attribute(r, &module.types),
            Dialect::Sdy => sdy::attribute(r),
            Dialect::Stablehlo => stablehlo::attribute(r, module),
            Dialect::Chlo => stablehlo::chlo_attribute(r),
            Dialect::Other => Ok(Attribute::Unknown(r.varint()?)),
        }
    }

    /// Decodes a type.
    pub fn ty(self, r: &mut Reader<'_>) -> Result<Type> {
        match self {
            Dialect::Builtin => builtin::ty(r),
            Dialect::Vhlo => vhlo::ty(r),
            Dialect::Stablehlo => stablehlo::ty(r),
            Dialect::Sdy | Dialect::Chlo | Dialect::Other => Ok(Type::Unknown(r.varint()?)),
        }
    }
}
