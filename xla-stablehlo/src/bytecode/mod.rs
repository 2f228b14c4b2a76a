//! MLIR bytecode, versions 0 to 6, with the dialects of StableHLO's portable artifacts: `builtin`, `vhlo`, `sdy`.
//!
//! The container is that of MLIR ("MLIR Bytecode Format", LLVM project); artifacts are what
//! `serialize_portable_artifact` of StableHLO writes. Tables of attributes and types become the tables of a [`Module`]
//! entry by entry, whatever they refer to, and regions are read with a stack of their own: neither nesting nor forward
//! references take stack or memory beyond the size of the file.

mod builtin;
mod dialect;
mod numbers;
mod operations;
mod reader;
mod sdy;
mod sections;
mod tables;
pub mod vhlo;

use xla_hlo::{Error, Result};

use crate::ir::Module;
use dialect::Dialect;
use reader::{Reader, TableSizes};
use sections::{Container, PROPERTIES, Section};

/// Whether bytes begin as MLIR bytecode does.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(&sections::MAGIC)
}

/// Reads a program.
///
/// `Error::InvalidArgument` for a malformed file, with the byte and the section; `Error::Unimplemented` for a container
/// or an operation that is newer than this reader.
pub fn read(bytes: &[u8]) -> Result<Module> {
    let container = Container::new(bytes)?;
    let mut tables = TableSizes::default();
    let strings = sections::strings(container.section(Section::Strings, tables)?)?;
    tables.strings = strings.len();
    let dialects = sections::dialects(container.section(Section::Dialects, tables)?, container.version, &strings)?;
    let kinds: Vec<Dialect> = dialects.names.iter().map(|&name| Dialect::from_name(&strings[name])).collect();

    let offsets = container.section(Section::EntryOffsets, tables)?;
    let mut sizes = offsets.clone();
    (tables.attributes, tables.types) = (sizes.count()?, sizes.count()?);
    let payloads = container.section(Section::Entries, tables)?;
    let (attributes, types) = tables::entries(offsets, payloads, &kinds)?;
    let types = tables::types(types)?;
    let attributes = tables::attributes(attributes, &types)?;
    let mut module = Module::new(container.target, strings, types, attributes);
    module.check_tables().map_err(|error| error.context("bytecode"))?;

    let properties = match container.optional(Section::Properties, tables) {
        Some(section) => properties(section)?,
        None if container.version >= PROPERTIES => {
            return Err(Error::invalid_argument("bytecode: there is no section of properties"));
        }
        None => Vec::new(),
    };
    let ir = container.section(Section::Ir, tables)?;
    operations::read(&container, ir, properties, &dialects, &mut module)?;
    vhlo::verify(&module)?;
    Ok(module)
}

/// The entries of the properties section.
fn properties(mut r: Reader<'_>) -> Result<Vec<Reader<'_>>> {
    let entries = r.list(|r| {
        let size = r.count()?;
        r.part(size, "properties")
    })?;
    r.finish("the properties")?;
    Ok(entries)
}
