//! Attribute encodings that several dialects share: integers and floats, enumerations, operand aliases.

use xla_hlo::entity::Arena;
use xla_hlo::{ElementType, Result};

use super::reader::Reader;
use crate::ir::{Attribute, EnumKind, Type, TypeId, extend_signs};

/// Decodes an integer attribute: its type, followed by a value of the type's width.
pub(super) fn integer(r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
    let (offset, ty) = (r.offset(), r.ty()?);
    let (width, is_signed) = match &types[ty] {
        Type::Element(element) if element.is_integer() => (element.bit_width(), element.is_signed()),
        Type::Element(ElementType::Pred) => (1, false),
        Type::Index => (64, true),
        other => return Err(r.error_at(offset, format!("an integer attribute has type {other:?}"))),
    };
    let bits = r.known_width(width)?;
    let spare = 64 - width as u32;
    let value = if is_signed { bits << spare >> spare } else { ((bits as u64) << spare >> spare) as i64 };
    Ok(Attribute::Integer { ty, value })
}

/// Decodes a float attribute: its type, followed by a value of the type's width.
pub(super) fn float(r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
    let (offset, ty) = (r.offset(), r.ty()?);
    match &types[ty] {
        Type::Element(element) if element.is_float() => {
            let width = element.bit_width();
            Ok(Attribute::Float { ty, bits: float_bits(r, width)? })
        }
        Type::Foreign(_) => Ok(Attribute::Foreign("float")),
        other => Err(r.error_at(offset, format!("a float attribute has type {other:?}"))),
    }
}

/// Decodes a dense elements attribute: its type, followed by the bytes of the elements.
pub(super) fn dense(r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
    let ty = r.ty()?;
    let mut bytes: Box<[u8]> = r.blob()?.into();
    if let Type::Tensor { element, .. } = types[ty]
        && let Type::Element(element) = types[element]
    {
        extend_signs(element, &mut bytes);
    }
    Ok(Attribute::Dense { ty, bytes })
}

/// Decodes the bits of a float of `width` bits, which are encoded as a signed integer.
pub(super) fn float_bits(r: &mut Reader<'_>, width: usize) -> Result<u64> {
    let bits = r.known_width(width)? as u64;
    Ok(if width < 64 { bits & ((1 << width) - 1) } else { bits })
}

/// Decodes an enumerator of `kind`.
pub(super) fn enumerator(r: &mut Reader<'_>, kind: EnumKind) -> Result<Attribute> {
    let (offset, value) = (r.offset(), r.varint()?);
    match kind.names().get(usize::try_from(value).unwrap_or(usize::MAX)) {
        Some(_) => Ok(Attribute::Enum(kind, value as u32)),
        None => Err(r.unknown_at(offset, format!("value {value} of {kind:?}"))),
    }
}

/// Decodes an alias between a part of a custom call's result and a part of one of its operands.
pub(super) fn output_operand_alias(r: &mut Reader<'_>) -> Result<Attribute> {
    let output = r.list(Reader::signed)?.into();
    let (offset, operand) = (r.offset(), r.signed()?);
    let operand =
        i32::try_from(operand).map_err(|_| r.error_at(offset, format!("operand index {operand} is out of range")))?;
    Ok(Attribute::OutputOperandAlias { output, operand, operand_path: r.list(Reader::signed)?.into() })
}
