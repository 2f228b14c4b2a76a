//! The dialects that artifacts hold, each with its encoding of attributes and types.

use xla_hlo::Result;

use super::reader::Reader;
use super::{builtin, sdy, stablehlo, vhlo};
use crate::ir::{Attribute, Module, Type};

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Builtin,
    Vhlo,
    Sdy,
    Stablehlo,
    Chlo,
    /// One that only names operations, or that is unknown here.
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

    /// Name of a dialect whose encoding is known here.
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

    /// Decodes an attribute. The module's types decide the widths of numbers; parts of the attribute that the file does
    /// not number become attributes of the module.
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
