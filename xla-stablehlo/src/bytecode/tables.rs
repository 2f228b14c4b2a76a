//! The tables of attributes and types: each entry is decoded by its dialect, whatever it refers to.

use xla_hlo::Result;
use xla_hlo::entity::Arena;

use super::dialect::Dialect;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, Type, TypeId};

/// The entries of a table that are still to come.
#[derive(Clone)]
struct Table<'a> {
    dialects: &'a [Dialect],
    offsets: Reader<'a>,
    payloads: Reader<'a>,
    /// Entries of the table, and of the group that is being read.
    left: usize,
    group: usize,
    dialect: Dialect,
}

/// An entry, not decoded yet.
struct Entry<'a> {
    dialect: Dialect,
    /// Whether the dialect's own encoding is used, not text.
    is_encoded: bool,
    payload: Reader<'a>,
}

/// Both tables.
pub(super) struct Entries<'a> {
    attributes: Table<'a>,
    types: Table<'a>,
}

impl<'a> Entries<'a> {
    /// Finds the tables: the types come after the attributes.
    pub fn new(mut offsets: Reader<'a>, payloads: Reader<'a>, dialects: &'a [Dialect]) -> Result<Entries<'a>> {
        let (attributes, types) = (offsets.count()?, offsets.count()?);
        let attributes = Table { dialects, offsets, payloads, left: attributes, group: 0, dialect: Dialect::Other };
        let mut rest = attributes.clone();
        while rest.next()?.is_some() {}
        let types = Table { left: types, ..rest };
        let mut rest = types.clone();
        while rest.next()?.is_some() {}
        rest.offsets.finish("the offsets")?;
        rest.payloads.finish("the attributes and types")?;
        Ok(Entries { attributes, types })
    }

    /// Decodes the entries; the types decide the widths of numbers.
    pub fn decode(self) -> Result<(Arena<TypeId, Type>, Arena<AttrId, Attribute>)> {
        let (mut types, mut attributes) = (Arena::default(), Arena::default());
        let mut table = self.types;
        types.reserve(table.left);
        while let Some(mut entry) = table.next()? {
            let offset = entry.payload.offset();
            let ty = if entry.is_encoded { entry.dialect.ty(&mut entry.payload)? } else { Type::Text };
            match ty {
                Type::Text => {}
                Type::Unknown(code) => entry.check_code("type", offset, code)?,
                _ => entry.payload.finish("a type")?,
            }
            types.push(ty);
        }
        let mut table = self.attributes;
        attributes.reserve(table.left);
        while let Some(mut entry) = table.next()? {
            let offset = entry.payload.offset();
            let attribute = match entry.is_encoded {
                true => entry.dialect.attribute(&mut entry.payload, &types)?,
                false => Attribute::Text,
            };
            match attribute {
                Attribute::Text | Attribute::Foreign(_) => {}
                Attribute::Unknown(code) => entry.check_code("attribute", offset, code)?,
                _ => entry.payload.finish("an attribute")?,
            }
            attributes.push(attribute);
        }
        Ok((types, attributes))
    }
}

impl<'a> Table<'a> {
    fn next(&mut self) -> Result<Option<Entry<'a>>> {
        while self.left > 0 && self.group == 0 {
            self.begin_group()?;
        }
        if self.left == 0 {
            return Ok(None);
        }
        let (offset, (size, is_encoded)) = (self.offsets.offset(), self.offsets.flagged()?);
        let size = usize::try_from(size).map_err(|_| self.offsets.error_at(offset, "a size beyond the file"))?;
        let payload = self.payloads.part(size, "attributes and types")?;
        self.left -= 1;
        self.group -= 1;
        Ok(Some(Entry { dialect: self.dialect, is_encoded, payload }))
    }

    fn begin_group(&mut self) -> Result<()> {
        let offsets = &mut self.offsets;
        let (offset, dialect) = (offsets.offset(), offsets.varint()?);
        let known = usize::try_from(dialect).ok().and_then(|index| self.dialects.get(index)).copied();
        let count = self.dialects.len();
        self.dialect = known.ok_or_else(|| offsets.error_at(offset, format!("there are {count} dialects")))?;
        let (offset, group) = (offsets.offset(), offsets.count()?);
        if group > self.left {
            let left = self.left;
            return Err(offsets.error_at(offset, format!("a group of {group} entries, where {left} are left")));
        }
        self.group = group;
        Ok(())
    }
}

impl Entry<'_> {
    /// An error for a code that the dialect, if it is known here, does not have.
    fn check_code(&self, what: &str, offset: usize, code: u64) -> Result<()> {
        match self.dialect.name() {
            Some(dialect) => Err(self.payload.unknown_at(offset, format!("{what} {code} of {dialect}"))),
            None => Ok(()),
        }
    }
}
