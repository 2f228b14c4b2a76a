//! The tables of attributes and types: each entry is decoded by its dialect, whatever it refers to.

use xla_hlo::Result;
use xla_hlo::entity::Arena;

use super::dialect::Dialect;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, Type, TypeId};

/// An entry of a table, not decoded yet.
pub(super) struct Entry<'a> {
    dialect: Dialect,
    /// Whether the dialect's own encoding is used, not text.
    is_encoded: bool,
    payload: Reader<'a>,
}

/// The entries of both tables: attributes, types.
pub(super) fn entries<'a>(
    mut offsets: Reader<'a>,
    mut payloads: Reader<'a>,
    dialects: &[Dialect],
) -> Result<(Vec<Entry<'a>>, Vec<Entry<'a>>)> {
    let (attributes, types) = (offsets.count()?, offsets.count()?);
    let mut table = |count: usize| {
        let mut entries = Vec::with_capacity(count);
        while entries.len() < count {
            let (offset, dialect) = (offsets.offset(), offsets.varint()?);
            let dialect = usize::try_from(dialect).ok().and_then(|index| dialects.get(index)).copied();
            let dialect =
                dialect.ok_or_else(|| offsets.error_at(offset, format!("there are {} dialects", dialects.len())))?;
            let (offset, group) = (offsets.offset(), offsets.count()?);
            if group > count - entries.len() {
                let left = count - entries.len();
                return Err(offsets.error_at(offset, format!("a group of {group} entries, where {left} are left")));
            }
            for _ in 0..group {
                let (offset, (size, is_encoded)) = (offsets.offset(), offsets.flagged()?);
                let size = usize::try_from(size).map_err(|_| offsets.error_at(offset, "a size beyond the file"))?;
                let payload = payloads.part(size, "attributes and types")?;
                entries.push(Entry { dialect, is_encoded, payload });
            }
        }
        Ok(entries)
    };
    let tables = (table(attributes)?, table(types)?);
    offsets.finish("the offsets")?;
    payloads.finish("the attributes and types")?;
    Ok(tables)
}

/// Decodes all types.
pub(super) fn types(entries: Vec<Entry<'_>>) -> Result<Arena<TypeId, Type>> {
    let mut types = Arena::default();
    for mut entry in entries {
        let ty = match entry.is_encoded {
            true => entry.dialect.ty(&mut entry.payload)?,
            false => Type::Text,
        };
        if !matches!(ty, Type::Text | Type::Unknown(_)) {
            entry.payload.finish("a type")?;
        }
        types.push(ty);
    }
    Ok(types)
}

/// Decodes all attributes; the types decide the widths of numbers.
pub(super) fn attributes(entries: Vec<Entry<'_>>, types: &Arena<TypeId, Type>) -> Result<Arena<AttrId, Attribute>> {
    let mut attributes = Arena::default();
    for mut entry in entries {
        let attribute = match entry.is_encoded {
            true => entry.dialect.attribute(&mut entry.payload, types)?,
            false => Attribute::Text,
        };
        if !matches!(attribute, Attribute::Text | Attribute::Unknown(_) | Attribute::Foreign(_)) {
            entry.payload.finish("an attribute")?;
        }
        attributes.push(attribute);
    }
    Ok(attributes)
}
