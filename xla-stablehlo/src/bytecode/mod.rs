//! MLIR bytecode, versions 0 to 6. Covers the dialects of StableHLO's portable artifacts (`builtin`, `vhlo`, `sdy`) and
//! the unversioned ones (`stablehlo`, `chlo`, `func`, `arith`).
//!
//! The container format is specified in "MLIR Bytecode Format" (LLVM project). Portable artifacts are the output of
//! StableHLO's `serialize_portable_artifact`. The tables of attributes and types become the tables of a [`Module`],
//! entry by entry, and references stay indices. Regions are read with an explicit stack. Therefore neither deep nesting
//! nor forward references use call stack or more memory than the size of the file allows.

mod builtin;
mod dialect;
mod numbers;
mod operations;
mod properties;
pub(crate) mod reader;
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

/// Whether `bytes` begins with the magic number of MLIR bytecode.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(&sections::MAGIC)
}

/// Reads a program.
///
/// Errors:
///
/// - `Error::InvalidArgument` for a malformed file; the message names the byte and the section.
/// - `Error::Unimplemented` for a container version or an operation that is newer than this reader.
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
            return Err(Error::invalid_argument("bytecode: the section of properties is missing"));
        }
        None => Properties::default(),
    };
    let ir = container.section(Section::Ir, tables)?;
    operations::read(&container, ir, properties, &dialects, &mut module)?;
    ir::verify(&module).map_err(|violation| violation.in_bytecode(&module))?;
    Ok(module)
}
