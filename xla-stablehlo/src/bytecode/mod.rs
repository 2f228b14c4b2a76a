//! MLIR bytecode, versions 0 to 6, with the dialects of StableHLO's portable artifacts, `builtin`, `vhlo` and `sdy`,
//! and those of programs that MLIR writes as they are: `stablehlo`, `chlo`, `func`, `arith`.
//!
//! The container is that of MLIR ("MLIR Bytecode Format", LLVM project); artifacts are what
//! `serialize_portable_artifact` of StableHLO writes. Tables of attributes and types become the tables of a [`Module`]
//! entry by entry, whatever they refer to, and regions are read with a stack of their own: neither nesting nor forward
//! references take stack or memory beyond the size of the file.

mod builtin;
mod dialect;
mod numbers;
mod operations;
mod properties;
mod reader;
mod sdy;
mod sections;
mod stablehlo;
mod tables;
mod vhlo;

use xla_hlo::{Error, Result};

use crate::ir::{self, Module};
use dialect::Dialect;
use properties::Properties;
use reader::TableSizes;
use sections::{Container, PROPERTIES, Section};
use tables::Entries;

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
    let mut tables = TableSizes { target: container.target, ..TableSizes::default() };
    let strings = sections::strings(container.section(Section::Strings, tables)?)?;
    tables.strings = strings.len();
    let dialects = sections::dialects(container.section(Section::Dialects, tables)?, container.version, &strings)?;
    let kinds: Vec<Dialect> = dialects.names.iter().map(|&name| Dialect::from_name(&strings[name])).collect();

    let offsets = container.section(Section::EntryOffsets, tables)?;
    let mut sizes = offsets.clone();
    (tables.attributes, tables.types) = (sizes.count()?, sizes.count()?);
    let payloads = container.section(Section::Entries, tables)?;
    let entries = Entries::new(offsets, payloads, &kinds)?;
    let mut module = Module::default();
    (module.version, module.strings) = (container.target, strings);
    entries.decode(&mut module)?;
    module.check_tables().map_err(|error| error.context("bytecode"))?;

    let properties = match container.optional(Section::Properties, tables) {
        Some(section) => Properties::new(section)?,
        None if container.version >= PROPERTIES => {
            return Err(Error::invalid_argument("bytecode: there is no section of properties"));
        }
        None => Properties::default(),
    };
    let ir = container.section(Section::Ir, tables)?;
    operations::read(&container, ir, properties, &dialects, &mut module)?;
    ir::verify(&module).map_err(|violation| violation.in_bytecode(&module))?;
    Ok(module)
}
