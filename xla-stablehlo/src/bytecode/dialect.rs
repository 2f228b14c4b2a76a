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
    /// One that only names operations, or that is unknown here.
    Other,
}

impl Dialect {
    pub fn from_name(name: &[u8]) -> Dialect {
        match name {
            b"builtin" => Dialect::Builtin,
            b"vhlo" => Dialect::Vhlo,
            b"sdy" => Dialect::Sdy,
            _ => Dialect::Other,
        }
    }

    /// Decodes an attribute. The types decide the widths of numbers.
    pub fn attribute(self, r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
        match self {
            Dialect::Builtin => builtin::attribute(r, types),
            Dialect::Vhlo => vhlo::attribute(r, types),
            Dialect::Sdy => sdy::attribute(r),
            Dialect::Other => Ok(Attribute::Unknown(r.varint()?)),
        }
    }

    /// Decodes a type.
    pub fn ty(self, r: &mut Reader<'_>) -> Result<Type> {
        match self {
            Dialect::Builtin => builtin::ty(r),
            Dialect::Vhlo => vhlo::ty(r),
            Dialect::Sdy | Dialect::Other => Ok(Type::Unknown(r.varint()?)),
        }
    }

    /// Names of the properties (inherent attributes) of an operation in the order of their encoding, `?` in front of
    /// one that may be absent; `None` for an operation that is unknown here.
    pub fn properties(self, operation: &[u8]) -> Option<&'static [&'static str]> {
        match self {
            Dialect::Builtin => builtin::properties(operation),
            Dialect::Vhlo => vhlo::properties(operation),
            Dialect::Sdy => sdy::properties(operation),
            Dialect::Other => None,
        }
    }
}
