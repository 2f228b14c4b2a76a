//! The tables of attributes and types. Each entry is decoded by its dialect, and references between entries stay
//! indices.

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result};

use super::dialect::Dialect;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, Module, Type, TypeId};
use crate::text;

/// Iterator over the remaining entries of a table.
#[derive(Clone)]
struct Table<'a> {
    dialects: &'a [Dialect],
    offsets: Reader<'a>,
    payloads: Reader<'a>,
    /// Remaining entries of the table, and of the group that is being read.
    left: usize,
    group: usize,
    dialect: Dialect,
}

/// Entry that is not decoded yet.
struct Entry<'a> {
    dialect: Dialect,
    /// Whether the payload has the dialect's binary encoding; otherwise, it is text.
    is_encoded: bool,
    payload: Reader<'a>,
}

/// The attribute and type tables.
pub(super) struct Entries<'a> {
    attributes: Table<'a>,
    types: Table<'a>,
}

impl<'a> Entries<'a> {
    /// Finds both tables. The types follow the attributes.
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

    /// Decodes the entries into the tables of `module`, under their numbers. Parts of entries, which have no number,
    /// are appended. Types are decoded before attributes because they determine the widths of numbers.
    pub fn decode(self, module: &mut Module) -> Result<()> {
        (0..self.attributes.left).for_each(|_| {
            module.attributes.push(Attribute::Text);
        });
        (0..self.types.left).for_each(|_| {
            module.types.push(Type::Text);
        });
        let (mut table, mut id) = (self.types, 0);
        while let Some(entry) = table.next()? {
            let ty = entry.ty(module)?;
            module.types[TypeId::from_index(id)] = ty;
            id += 1;
        }
        let (mut table, mut id) = (self.attributes, 0);
        while let Some(entry) = table.next()? {
            let attribute = entry.attribute(module)?;
            module.attributes[AttrId::from_index(id)] = attribute;
            id += 1;
        }
        Ok(())
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
        let size =
            usize::try_from(size).map_err(|_| self.offsets.error_at(offset, "an entry is larger than the file"))?;
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
        self.dialect = known.ok_or_else(|| {
            offsets.error_at(offset, format!("the dialect is out of range: the bytecode has {count}"))
        })?;
        let (offset, group) = (offsets.offset(), offsets.count()?);
        if group > self.left {
            let left = self.left;
            return Err(offsets.error_at(offset, format!("a group has {group} entries, but {left} are left")));
        }
        self.group = group;
        Ok(())
    }
}

impl Entry<'_> {
    fn ty(mut self, module: &mut Module) -> Result<Type> {
        if !self.is_encoded {
            let text = self.text()?;
            return match text::type_within(module, text) {
                Ok(id) => Ok(module.types[id].clone()),
                Err(Error::Unimplemented(_)) => Ok(Type::Text),
                Err(error) => Err(self.in_text(error)),
            };
        }
        let offset = self.payload.offset();
        let ty = self.dialect.ty(&mut self.payload)?;
        match ty {
            Type::Unknown(code) => self.check_code("type", offset, code)?,
            _ => self.payload.finish("a type")?,
        }
        Ok(ty)
    }

    fn attribute(mut self, module: &mut Module) -> Result<Attribute> {
        if !self.is_encoded {
            // Attributes of other dialects have their own syntax, and the lowering does not use them.
            if self.dialect.name().is_none() {
                return Ok(Attribute::Text);
            }
            let text = self.text()?;
            return match text::attribute_within(module, text) {
                Ok(id) => Ok(std::mem::replace(&mut module.attributes[id], Attribute::Unit)),
                Err(Error::Unimplemented(_)) => Ok(Attribute::Text),
                Err(error) => Err(self.in_text(error)),
            };
        }
        let offset = self.payload.offset();
        let attribute = self.dialect.attribute(&mut self.payload, module)?;
        match attribute {
            Attribute::Foreign(_) => {}
            Attribute::Unknown(code) => self.check_code("attribute", offset, code)?,
            _ => self.payload.finish("an attribute")?,
        }
        Ok(attribute)
    }

    /// Returns the payload as text, without the terminating NUL.
    fn text(&self) -> Result<&str> {
        let mut r = self.payload.clone();
        let bytes = r.take(r.remaining())?;
        let text = bytes.strip_suffix(b"\0").and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| self.payload.error("a textual entry is not UTF-8 that ends with NUL"))
    }

    /// Adds the location of this textual entry to an error.
    fn in_text(&self, error: Error) -> Error {
        error.context(format!("bytecode, byte {}: a textual entry", self.payload.offset()))
    }

    /// Returns an error for an unknown code of a known dialect.
    fn check_code(&self, what: &str, offset: usize, code: u64) -> Result<()> {
        match self.dialect.name() {
            Some(dialect) => Err(self.payload.unknown_at(offset, format!("{what} {code} of {dialect}"))),
            None => Ok(()),
        }
    }
}
