//! Conversion of MLIR dictionaries to the typed attributes of HLO's custom calls and composites.

use xla_hlo::ops::{FfiAttributes, FfiValue};
use xla_hlo::{ElementKind, ElementType, Error, Result, Scalar};

use super::attributes::{self, Attributes};
use super::types;
use crate::ir::{AttrId, Attribute, Module, OpId, Type, TypeId};

/// Limit on the nesting of dictionary values.
const MAX_DEPTH: usize = 32;

/// Converts a dictionary to typed attributes.
pub(super) fn typed(module: &Module, id: AttrId) -> Result<FfiAttributes> {
    match value(module, id, 0)? {
        FfiValue::Dictionary(attributes) => Ok(attributes),
        _ => Err(Error::invalid_argument(format!("{} is not a dictionary", module.attribute_text(id)))),
    }
}

fn value(module: &Module, id: AttrId, depth: usize) -> Result<FfiValue> {
    if depth > MAX_DEPTH {
        return Err(Error::resource_exhausted(format!("a dictionary nests deeper than {MAX_DEPTH}")));
    }
    let refused = || Error::unimplemented(format!("{} is not supported in a dictionary", module.attribute_text(id)));
    Ok(match &module.attributes[id] {
        Attribute::Unit => FfiValue::Unit,
        Attribute::Bool(flag) => FfiValue::Boolean(*flag),
        Attribute::Integer { ty, value } => match element(module, *ty) {
            Some(ty) if ty.kind() == ElementKind::Unsigned => FfiValue::Number(ty, Scalar::Unsigned(*value as u64)),
            Some(ty) if ty.kind() == ElementKind::Signed => FfiValue::Number(ty, Scalar::Signed(*value)),
            _ => return Err(refused()),
        },
        Attribute::Float { ty, bits } => match element(module, *ty) {
            Some(ty) if ty.is_float() => FfiValue::Number(ty, Scalar::from_bits(ty, *bits)),
            _ => return Err(refused()),
        },
        Attribute::String(string) => FfiValue::Text(module.strings[*string].to_vec()),
        Attribute::Symbol(path) => {
            let path = path.iter().map(|&name| module.string_attribute(name).map(std::borrow::Cow::into_owned));
            FfiValue::Symbol(path.collect::<Option<_>>().ok_or_else(refused)?)
        }
        Attribute::Type(ty) => FfiValue::Type(element(module, *ty).ok_or_else(refused)?),
        Attribute::Array(list) => {
            FfiValue::List(list.iter().map(|&id| value(module, id, depth + 1)).collect::<Result<_>>()?)
        }
        Attribute::Dictionary(entries) => {
            let entry = |&(name, id): &(AttrId, AttrId)| {
                let name = module.string_attribute(name).ok_or_else(refused)?;
                Ok((name.into_owned(), value(module, id, depth + 1)?))
            };
            FfiValue::Dictionary(entries.iter().map(entry).collect::<Result<_>>()?)
        }
        Attribute::DenseArray { .. } | Attribute::Dense { .. } => {
            let literal = attributes::literal(module, id)?.ok_or_else(refused)?;
            match &module.attributes[id] {
                Attribute::Dense { .. } => FfiValue::Elements(literal),
                _ => {
                    let shape = literal.array_shape();
                    let numbers = (0..shape.element_count()).map(|i| literal.get(i)).collect();
                    FfiValue::Numbers(shape.element_type(), numbers)
                }
            }
        }
        _ => return Err(refused()),
    })
}

/// Returns an element type; `index` is a 64-bit integer.
fn element(module: &Module, id: TypeId) -> Option<ElementType> {
    match &module.types[id] {
        Type::Index => Some(ElementType::S64),
        Type::Element(_) | Type::Complex(_) => types::element_type(module, id).ok(),
        _ => None,
    }
}

/// Returns the dictionaries of a function's arguments or results; empty if the attribute is absent.
pub(super) fn dictionaries<'s>(program: &'s Module, op: OpId, name: &str) -> Result<&'s [AttrId]> {
    let attributes = Attributes { module: program, op };
    attributes.get(name).map_or(Ok(&[]), |_| attributes.array(name))
}
