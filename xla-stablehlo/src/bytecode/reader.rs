//! Reader of the primitive encodings: varints, flags, references and blobs. Every error names the byte and the section.

use std::ops::Range;

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result};

use crate::ir::{AttrId, Few, StringId, TypeId, Version};

/// Sizes of the tables that references index, and the VHLO version for error messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableSizes {
    /// VHLO version that the file was written for.
    pub target: Option<Version>,
    /// Number of strings.
    pub strings: usize,
    /// Number of attributes.
    pub attributes: usize,
    /// Number of types.
    pub types: usize,
}

/// Cursor over the bytes of a section.
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of the first byte in the file.
    start: usize,
    section: &'static str,
    tables: TableSizes,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`, which begin at offset `start` of the file.
    pub fn new(bytes: &'a [u8], start: usize, section: &'static str, tables: TableSizes) -> Reader<'a> {
        Reader { bytes, at: 0, start, section, tables }
    }

    /// Returns the current offset in the file.
    pub fn offset(&self) -> usize {
        self.start + self.at
    }

    /// Returns the number of remaining bytes.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether all bytes were read.
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns an error about the data at byte `offset`.
    pub fn error_at(&self, offset: usize, what: impl std::fmt::Display) -> Error {
        Error::invalid_argument(format!("bytecode, byte {offset} (section {}): {what}", self.section))
    }

    /// Returns an error about a code at byte `offset` that a later version may define.
    pub fn unknown_at(&self, offset: usize, what: impl std::fmt::Display) -> Error {
        let version = self.tables.target.map_or(String::new(), |version| format!(", written for VHLO {version},"));
        let section = self.section;
        Error::unimplemented(format!("bytecode, byte {offset} (section {section}): {what}{version} is unknown here"))
    }

    /// Returns an error at the current offset.
    pub fn error(&self, what: impl std::fmt::Display) -> Error {
        self.error_at(self.offset(), what)
    }

    /// Returns an error unless all bytes were read.
    pub fn finish(&self, what: impl std::fmt::Display) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.error(format!("{left} bytes are left after {what}"))),
        }
    }

    /// Takes the next byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Takes the next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.remaining() {
            return Err(self.error(format!("{count} bytes are needed, {} are left", self.remaining())));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// Takes the next `count` bytes as a separate reader.
    pub fn part(&mut self, count: usize, section: &'static str) -> Result<Reader<'a>> {
        let start = self.offset();
        Ok(Reader { bytes: self.take(count)?, at: 0, start, section, tables: self.tables })
    }

    /// Returns a reader of the file range `places`; `None` unless it is within this reader's bytes.
    pub fn at(&self, places: Range<usize>) -> Option<Reader<'a>> {
        let bytes = self.bytes.get(places.start.checked_sub(self.start)?..places.end.checked_sub(self.start)?)?;
        Some(Reader { bytes, at: 0, start: places.start, ..self.clone() })
    }

    /// Reads an unsigned number of up to 64 bits. The trailing zeros of its first byte count the bytes that follow.
    pub fn varint(&mut self) -> Result<u64> {
        let first = self.byte()?;
        if first & 1 == 1 {
            return Ok(u64::from(first >> 1));
        }
        let more = first.trailing_zeros() as usize;
        let mut wide = [0; 8];
        if more == 8 {
            wide.copy_from_slice(self.take(8)?);
            return Ok(u64::from_le_bytes(wide));
        }
        wide[0] = first;
        wide[1..=more].copy_from_slice(self.take(more)?);
        Ok(u64::from_le_bytes(wide) >> (more + 1))
    }

    /// Reads a line or column number of a source location.
    pub fn line(&mut self) -> Result<u32> {
        Ok(u32::try_from(self.varint()?).unwrap_or(u32::MAX))
    }

    /// Reads a signed number in zigzag encoding.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a number whose least significant bit is a flag.
    pub fn flagged(&mut self) -> Result<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// Reads a count of items that take at least one byte each.
    pub fn count(&mut self) -> Result<usize> {
        let offset = self.offset();
        let count = self.varint()?;
        self.checked_count(count, offset)
    }

    /// Checks a count, read at `offset`, of items that take at least one byte each.
    pub fn checked_count(&self, count: u64, offset: usize) -> Result<usize> {
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => Err(self.error_at(offset, format!("a count is {count}, but {} bytes are left", self.remaining()))),
        }
    }

    /// Reads a byte string with its length in front.
    pub fn blob(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    /// Reads a list with the number of its elements in front.
    pub fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| element(self)).collect()
    }

    /// Reads a short list, as [`Reader::list`] does.
    pub fn few<T>(&mut self, mut element: impl FnMut(&mut Self) -> Result<T>) -> Result<Few<T>> {
        let count = self.count()?;
        (0..count).map(|_| element(self)).collect()
    }

    /// Reads a reference to a string.
    pub fn string(&mut self) -> Result<StringId> {
        let (offset, index) = (self.offset(), self.varint()?);
        self.string_at(index, offset)
    }

    /// Returns the string for an index that was read at `offset`.
    pub fn string_at(&self, index: u64, offset: usize) -> Result<StringId> {
        self.reference(index, self.tables.strings, "string", offset).map(StringId::from_index)
    }

    /// Reads a reference to an attribute.
    pub fn attribute(&mut self) -> Result<AttrId> {
        let (offset, index) = (self.offset(), self.varint()?);
        self.attribute_at(index, offset)
    }

    /// Returns the attribute for an index that was read at `offset`.
    fn attribute_at(&self, index: u64, offset: usize) -> Result<AttrId> {
        self.reference(index, self.tables.attributes, "attribute", offset).map(AttrId::from_index)
    }

    /// Reads a flagged reference to an attribute; `None` if the flag is not set.
    pub fn optional_attribute(&mut self) -> Result<Option<AttrId>> {
        let (offset, (index, is_there)) = (self.offset(), self.flagged()?);
        is_there.then(|| self.attribute_at(index, offset)).transpose()
    }

    /// Reads a list of references to attributes.
    pub fn attributes(&mut self) -> Result<Vec<AttrId>> {
        self.list(Reader::attribute)
    }

    /// Reads a reference to a type.
    pub fn ty(&mut self) -> Result<TypeId> {
        let (offset, index) = (self.offset(), self.varint()?);
        self.type_at(index, offset)
    }

    /// Returns the type for an index that was read at `offset`.
    pub fn type_at(&self, index: u64, offset: usize) -> Result<TypeId> {
        self.reference(index, self.tables.types, "type", offset).map(TypeId::from_index)
    }

    /// Reads a list of references to types.
    pub fn types(&mut self) -> Result<Vec<TypeId>> {
        self.list(Reader::ty)
    }

    /// Reads the extents of a shape. `i64::MIN` marks a dynamic extent.
    pub fn dims(&mut self) -> Result<Vec<Option<u64>>> {
        self.list(|r| {
            let (offset, extent) = (r.offset(), r.signed()?);
            match u64::try_from(extent) {
                Ok(extent) => Ok(Some(extent)),
                Err(_) if extent == i64::MIN => Ok(None),
                Err(_) => Err(r.error_at(offset, format!("an extent is {extent}"))),
            }
        })
    }

    /// Reads a boolean, encoded as a byte of 0 or 1.
    pub fn boolean(&mut self) -> Result<bool> {
        let (offset, byte) = (self.offset(), self.byte()?);
        match byte {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error_at(offset, format!("a boolean is {byte}, not 0 or 1"))),
        }
    }

    /// Reads an integer of a known width of at most 64 bits, sign-extended.
    pub fn known_width(&mut self, width: usize) -> Result<i64> {
        if width <= 8 { Ok(i64::from(self.byte()? as i8)) } else { self.signed() }
    }

    fn reference(&self, index: u64, size: usize, what: &str, offset: usize) -> Result<usize> {
        match usize::try_from(index) {
            Ok(index) if index < size => Ok(index),
            _ => Err(self.error_at(offset, format!("{what} {index} is out of range: the bytecode has {size}"))),
        }
    }
}
