//! The container: header, sections, strings, and dialects with their operation names.

use std::ops::Range;

use xla_hlo::entity::Arena;
use xla_hlo::{Error, Result};

use super::reader::{Reader, TableSizes};
use crate::ir::{StringId, Version};

/// Magic number at the start of every file.
pub(super) const MAGIC: [u8; 4] = *b"ML\xEFR";
/// Newest container version that this reader supports.
const NEWEST: u64 = 6;
/// Container version from which a dialect may have its own version.
pub(super) const DIALECT_VERSIONS: u64 = 1;
/// Container version from which isolated regions may be in sections that a reader can skip.
pub(super) const REGION_SECTIONS: u64 = 2;
/// Container version from which use-list orders may be recorded.
pub(super) const USE_LISTS: u64 = 3;
/// Container version from which unknown locations of arguments are omitted and operation names are counted.
pub(super) const ELIDED_LOCATIONS: u64 = 4;
/// Container version from which inherent attributes are properties.
pub(super) const PROPERTIES: u64 = 5;

/// Sections by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Section {
    Strings,
    Dialects,
    Entries,
    EntryOffsets,
    Ir,
    /// Sections 5 and 6 are resources and their offsets. Artifacts have none, and no other section refers to them.
    DialectVersions = 7,
    Properties,
}

const NAMES: [&str; 9] = [
    "strings",
    "dialects",
    "attributes and types",
    "offsets of attributes and types",
    "IR",
    "resources",
    "offsets of resources",
    "dialect versions",
    "properties",
];

/// Sections of a file.
pub(super) struct Container<'a> {
    bytes: &'a [u8],
    /// Version of the container format.
    pub version: u64,
    /// VHLO version that the file was written for.
    pub target: Option<Version>,
    sections: [Option<Range<usize>>; NAMES.len()],
}

impl<'a> Container<'a> {
    /// Finds the sections of a file.
    pub fn new(bytes: &'a [u8]) -> Result<Container<'a>> {
        let mut r = Reader::new(bytes, 0, "header", TableSizes::default());
        if r.take(MAGIC.len()).ok() != Some(&MAGIC[..]) {
            return Err(r.error_at(0, "this is not MLIR bytecode, which begins with 4D 4C EF 52"));
        }
        let (offset, version) = (r.offset(), r.varint()?);
        if version > NEWEST {
            return Err(Error::unimplemented(format!(
                "bytecode, byte {offset}: version {version} of MLIR bytecode is not supported, only versions 0 to {NEWEST}"
            )));
        }
        let mut producer = Vec::new();
        loop {
            match r.byte()? {
                0 => break,
                byte => producer.push(byte),
            }
        }
        let mut sections = [const { None }; NAMES.len()];
        while !r.is_at_end() {
            let offset = r.offset();
            let (number, range) = section(&mut r, bytes)?;
            if sections[number].replace(range).is_some() {
                return Err(r.error_at(offset, format!("the section of {} appears twice", NAMES[number])));
            }
        }
        let target = String::from_utf8_lossy(&producer).strip_prefix("StableHLO_v").and_then(version_of);
        Ok(Container { bytes, version, target, sections })
    }

    /// Returns the number of bytes of the file.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a reader of a required section.
    pub fn section(&self, section: Section, tables: TableSizes) -> Result<Reader<'a>> {
        self.optional(section, tables).ok_or_else(|| {
            Error::invalid_argument(format!("bytecode: the section of {} is missing", NAMES[section as usize]))
        })
    }

    /// Returns a reader of an optional section.
    pub fn optional(&self, section: Section, tables: TableSizes) -> Option<Reader<'a>> {
        let range = self.sections[section as usize].clone()?;
        Some(Reader::new(&self.bytes[range.clone()], range.start, NAMES[section as usize], tables))
    }
}

/// Reads a section header; returns the number of the section and the range of its bytes.
fn section(r: &mut Reader<'_>, file: &[u8]) -> Result<(usize, Range<usize>)> {
    let offset = r.offset();
    let header = r.byte()?;
    let number = usize::from(header & 0x7f);
    if number >= NAMES.len() || number == Section::DialectVersions as usize {
        return Err(r.error_at(offset, format!("section number {number} is unknown here")));
    }
    let length = r.count()?;
    if header & 0x80 != 0 {
        let (offset, alignment) = (r.offset(), r.varint()?);
        if !alignment.is_power_of_two() {
            return Err(r.error_at(offset, format!("alignment {alignment} is not a power of two")));
        }
        while !(r.offset() as u64).is_multiple_of(alignment) {
            let offset = r.offset();
            if r.byte()? != 0xcb {
                return Err(r.error_at(offset, "the padding of an aligned section is missing"));
            }
        }
    }
    let start = r.offset();
    r.take(length)?;
    debug_assert!(r.offset() <= file.len());
    Ok((number, start..r.offset()))
}

/// Parses a version in the form `1.13.7`.
fn version_of(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let version = Version(parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(version)
}

/// Reads the string table. The lengths are listed in reverse order and include the terminating NUL.
pub(super) fn strings(mut r: Reader<'_>) -> Result<Arena<StringId, Box<[u8]>>> {
    let count = r.count()?;
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        let (offset, length) = (r.offset(), r.count()?);
        lengths.push(length.checked_sub(1).ok_or_else(|| r.error_at(offset, "a string of 0 bytes lacks its NUL"))?);
    }
    let mut strings = Arena::default();
    for length in lengths.into_iter().rev() {
        strings.push(r.take(length)?.into());
        if r.byte()? != 0 {
            return Err(r.error("a string does not end with NUL"));
        }
    }
    r.finish("the strings")?;
    Ok(strings)
}

/// Limit on the bytes of a dialect or operation name.
const LONGEST_NAME: usize = 255;

/// Dialects and their operation names.
pub(super) struct Dialects {
    /// Names of the dialects.
    pub names: Vec<StringId>,
    /// For each operation number, the dialect and the name within the dialect.
    pub operations: Vec<(usize, StringId)>,
}

/// Reads the dialects and operation names of a container of `version`.
pub(super) fn dialects(mut r: Reader<'_>, version: u64, strings: &Arena<StringId, Box<[u8]>>) -> Result<Dialects> {
    let name = |r: &Reader<'_>, index, offset| -> Result<StringId> {
        let name = r.string_at(index, offset)?;
        match strings[name].len() {
            ..=LONGEST_NAME => Ok(name),
            length => Err(r.error_at(offset, format!("a name has {length} bytes, which is too long"))),
        }
    };
    let names = r.list(|r| {
        let offset = r.offset();
        let (index, has_version) = if version < DIALECT_VERSIONS { (r.varint()?, false) } else { r.flagged()? };
        if has_version {
            let (offset, header) = (r.offset(), r.byte()?);
            if usize::from(header) != Section::DialectVersions as usize {
                return Err(r.error_at(offset, "the version of a dialect is missing"));
            }
            r.blob()?;
        }
        name(r, index, offset)
    })?;
    if version >= ELIDED_LOCATIONS {
        r.varint()?;
    }
    let mut operations = Vec::new();
    while !r.is_at_end() {
        let (offset, dialect) = (r.offset(), r.varint()?);
        let dialect = usize::try_from(dialect).ok().filter(|&dialect| dialect < names.len());
        let dialect = dialect.ok_or_else(|| {
            r.error_at(offset, format!("the dialect is out of range: the bytecode has {}", names.len()))
        })?;
        let count = r.count()?;
        for _ in 0..count {
            let offset = r.offset();
            let index = if version >= PROPERTIES { r.flagged()?.0 } else { r.varint()? };
            operations.push((dialect, name(&r, index, offset)?));
        }
    }
    Ok(Dialects { names, operations })
}
