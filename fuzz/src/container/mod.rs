//! Bytecode container as parts that a mutator changes, and its encoding with correct lengths.
//!
//! Only files in the form that MLIR writes are decoded: without alignment and without versions of dialects. Use-list
//! orders are dropped.

mod ir;
mod mutate;
mod numbers;
mod random;

pub use mutate::mutate;

use ir::Block;
use numbers::{Numbers, put};

const MAGIC: &[u8] = b"ML\xEFR";

/// Entry of the tables of attributes and types.
#[derive(Clone)]
struct Entry {
    dialect: u64,
    is_encoded: bool,
    payload: Vec<u8>,
}

/// Operation names of a dialect: index of the dialect, indices of strings with their flags.
#[derive(Clone)]
struct Names {
    dialect: u64,
    operations: Vec<u64>,
}

/// Decoded file.
#[derive(Clone)]
pub struct File {
    version: u64,
    producer: Vec<u8>,
    strings: Vec<Vec<u8>>,
    /// Indices of the names of dialects, with their flags.
    dialects: Vec<u64>,
    names: Vec<Names>,
    attributes: Vec<Entry>,
    types: Vec<Entry>,
    properties: Vec<Vec<u8>>,
    top: Block,
}

impl File {
    /// Decodes a file; `None` if it does not have the form that MLIR writes.
    pub fn decode(bytes: &[u8]) -> Option<File> {
        let mut r = Numbers(bytes.strip_prefix(MAGIC)?);
        let version = r.varint()?;
        let end = r.0.iter().position(|&byte| byte == 0)?;
        let producer = r.take(end)?.to_vec();
        r.byte()?;
        let mut sections: [&[u8]; 9] = [&[]; 9];
        while !r.0.is_empty() {
            let (number, length) = (r.byte()?, r.varint()?);
            *sections.get_mut(usize::from(number))? = r.take(usize::try_from(length).ok()?)?;
        }
        let (dialects, names) = dialects(Numbers(sections[1]), version)?;
        let [attributes, types] = tables(Numbers(sections[3]), Numbers(sections[2]))?;
        let mut ir = Numbers(sections[4]);
        Some(File {
            version,
            producer,
            strings: strings(Numbers(sections[0]))?,
            dialects,
            names,
            attributes,
            types,
            properties: Numbers(sections[8]).list_if_any(|r| {
                let size = r.varint()?;
                Some(r.take(usize::try_from(size).ok()?)?.to_vec())
            })?,
            top: Block::decode(&mut ir, version, 0)?,
        })
    }

    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        put(&mut file, self.version);
        file.extend(&self.producer);
        file.push(0);
        let mut section = |number: u8, payload: Vec<u8>| {
            file.push(number);
            put(&mut file, payload.len() as u64);
            file.extend(payload);
        };
        section(0, self.encoded_strings());
        section(1, self.encoded_dialects());
        section(3, self.encoded_offsets());
        section(2, self.attributes.iter().chain(&self.types).flat_map(|entry| entry.payload.clone()).collect());
        let mut ir = Vec::new();
        self.top.encode(&mut ir, self.version);
        section(4, ir);
        if self.version >= 5 {
            let mut properties = Vec::new();
            put(&mut properties, self.properties.len() as u64);
            for entry in &self.properties {
                put(&mut properties, entry.len() as u64);
                properties.extend(entry);
            }
            section(8, properties);
        }
        file
    }

    fn encoded_strings(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.strings.len() as u64);
        for string in self.strings.iter().rev() {
            put(&mut bytes, string.len() as u64 + 1);
        }
        for string in &self.strings {
            bytes.extend(string);
            bytes.push(0);
        }
        bytes
    }

    fn encoded_dialects(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.dialects.len() as u64);
        for &dialect in &self.dialects {
            put(&mut bytes, dialect);
        }
        if self.version >= 4 {
            put(&mut bytes, self.names.iter().map(|names| names.operations.len() as u64).sum());
        }
        for Names { dialect, operations } in &self.names {
            put(&mut bytes, *dialect);
            put(&mut bytes, operations.len() as u64);
            for &operation in operations {
                put(&mut bytes, operation);
            }
        }
        bytes
    }

    fn encoded_offsets(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.attributes.len() as u64);
        put(&mut bytes, self.types.len() as u64);
        for table in [&self.attributes, &self.types] {
            for group in table.chunk_by(|a, b| a.dialect == b.dialect) {
                put(&mut bytes, group[0].dialect);
                put(&mut bytes, group.len() as u64);
                for entry in group {
                    put(&mut bytes, (entry.payload.len() as u64) << 1 | u64::from(entry.is_encoded));
                }
            }
        }
        bytes
    }
}

/// Decodes strings; their lengths are stored in reverse order.
fn strings(mut r: Numbers<'_>) -> Option<Vec<Vec<u8>>> {
    let lengths = r.list(Numbers::varint)?;
    let string = |length: u64| Some(r.take(usize::try_from(length).ok()?)?.strip_suffix(&[0])?.to_vec());
    lengths.into_iter().rev().map(string).collect()
}

fn dialects(mut r: Numbers<'_>, version: u64) -> Option<(Vec<u64>, Vec<Names>)> {
    let dialects = r.list(Numbers::varint)?;
    if version >= 1 && dialects.iter().any(|dialect| dialect & 1 == 1) {
        return None;
    }
    if version >= 4 {
        r.varint()?;
    }
    let mut names = Vec::new();
    while !r.0.is_empty() {
        names.push(Names { dialect: r.varint()?, operations: r.list(Numbers::varint)? });
    }
    Some((dialects, names))
}

/// Decodes the entries of attributes and of types.
fn tables(mut offsets: Numbers<'_>, mut payloads: Numbers<'_>) -> Option<[Vec<Entry>; 2]> {
    let counts = [offsets.varint()?, offsets.varint()?];
    let mut tables = [Vec::new(), Vec::new()];
    for (table, count) in tables.iter_mut().zip(counts) {
        while (table.len() as u64) < count {
            let dialect = offsets.varint()?;
            for size in offsets.list(Numbers::varint)? {
                let payload = payloads.take(usize::try_from(size >> 1).ok()?)?.to_vec();
                table.push(Entry { dialect, is_encoded: size & 1 == 1, payload });
            }
        }
    }
    Some(tables)
}
