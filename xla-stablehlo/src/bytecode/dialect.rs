//! The dialects that artifacts hold, each with its encoding of attributes and types.

use xla_hlo::Result;
use xla_hlo::entity::Arena;

use super::reader::Reader;
use super::{builtin, sdy, vhlo};
use crate::ir::{Attribute, Type, TypeId};

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Builtin,
    Vhlo,
    Sdy,
    /// Its operations and attributes are written as those of VHLO; types beside Shardy's operations are its own.
    Stablehlo,
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
            Dialect::Other => None,
        }
    }

    /// Decodes an attribute. The types decide the widths of numbers.
    pub fn attribute(self, r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
        match self {
            Dialect::Builtin => builtin::attribute(r, types),
            Dialect::Vhlo => vhlo::attribute(r, types),
            Dialect::Sdy => sdy::attribute(r),
            Dialect::Stablehlo | Dialect::Other => Ok(Attribute::Unknown(r.varint()?)),
        }
    }

    /// Decodes a type.
    pub fn ty(self, r: &mut Reader<'_>) -> Result<Type> {
        match self {
            Dialect::Builtin => builtin::ty(r),
            Dialect::Vhlo => vhlo::ty(r),
            Dialect::Stablehlo => Ok(match r.varint()? {
                0 => Type::Token,
                code => Type::Unknown(code),
            }),
            Dialect::Sdy | Dialect::Other => Ok(Type::Unknown(r.varint()?)),
        }
    }
}
