//! Undefined symbols of object files.

use std::collections::BTreeSet;

use object::{BinaryFormat, Object, ObjectSymbol, pe};
use xla_hlo::{Error, Result};

/// Name prefixes of the builtins that each compiler for a processor provides (compiler-rt, libgcc), for arithmetic that
/// the processor lacks.
const BUILTINS: &[&str] = &[
    "__add",
    "__aeabi_",
    "__ashl",
    "__ashr",
    "__bswap",
    "__clz",
    "__cmp",
    "__ctz",
    "__div",
    "__eq",
    "__ext",
    "__fix",
    "__float",
    "__ge",
    "__gnu_",
    "__gt",
    "__hexagon_",
    "__le",
    "__lshr",
    "__lt",
    "__mod",
    "__mspabi_",
    "__mul",
    "__ne",
    "__popcount",
    "__sub",
    "__trunc",
    "__u",
    "__uc",
    "__unord",
];

/// Names of undefined functions of an object, sorted.
#[derive(Debug)]
pub(super) struct Undefined {
    /// All names, as they appear in the object.
    pub all: Vec<String>,
    /// Names of compiler builtins.
    pub builtins: Vec<String>,
}

/// Names of a symbol that LLVM references in floating-point code for Windows, to link the number formatting of the C
/// library. Without that library it is undefined. No code reads it.
const FLTUSED: [&str; 2] = ["_fltused", "__fltused"];

/// Size in bytes of a symbol in a COFF object file, and offsets of its section number and class.
const COFF_SYMBOL: usize = 18;
const COFF_SECTION: usize = 12;
const COFF_CLASS: usize = 16;

/// Makes the reference of an object file to `_fltused` local, and returns the sorted names of its undefined functions.
/// These are functions of the application and compiler builtins; any other name is an error.
pub(super) fn finish(mut code: Vec<u8>, application: &BTreeSet<&str>) -> Result<(Vec<u8>, Undefined)> {
    let unreadable = |reason| Error::internal(format!("the object file cannot be read: {reason}"));
    let object = object::File::parse(&*code).map_err(unreadable)?;
    let (mut names, mut fltused) = (Vec::new(), None);
    for symbol in object.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol.name().map_err(unreadable)?;
        if object.format() == BinaryFormat::Coff && FLTUSED.contains(&name) {
            fltused = Some(symbol.index().0);
        } else if !name.is_empty() && !is_of_the_format(name) {
            names.push(name.to_string());
        }
    }
    if let Some(number) = fltused {
        hide(&mut code, number)?;
    }
    Ok((code, undefined(names, application)?))
}

/// Turns a symbol of a COFF object file into a local one with an absolute value.
fn hide(code: &mut [u8], number: usize) -> Result<()> {
    // The file header contains the offset of the symbol table.
    let table = code.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes).unwrap_or_default();
    let start = table as usize + number * COFF_SYMBOL;
    let symbol = code
        .get_mut(start..start + COFF_SYMBOL)
        .ok_or_else(|| Error::internal("the object file cannot be read: it ends before its symbols"))?;
    symbol[COFF_SECTION..][..2].copy_from_slice(&pe::IMAGE_SYM_ABSOLUTE.to_le_bytes()[..2]);
    symbol[COFF_CLASS] = pe::IMAGE_SYM_CLASS_STATIC;
    Ok(())
}

/// Sorts the names and classifies them as functions of the application or compiler builtins.
fn undefined(mut names: Vec<String>, application: &BTreeSet<&str>) -> Result<Undefined> {
    names.sort();
    names.dedup();
    // Mach-O and COFF prepend an underscore.
    let is_of = |name: &&str| {
        application.contains(name) || name.strip_prefix('_').is_some_and(|name| application.contains(name))
    };
    let others: Vec<&str> = names.iter().map(String::as_str).filter(|name| !is_of(name)).collect();
    let foreign: Vec<&str> = others.iter().copied().filter(|name| !is_builtin(name)).collect();
    if foreign.is_empty() {
        let builtins = others.into_iter().map(str::to_string).collect();
        return Ok(Undefined { builtins, all: names });
    }
    Err(Error::unimplemented(format!(
        "the object would call {}, which no compiler provides; choose a processor with floating-point units for it",
        foreign.join(", ")
    )))
}

fn is_builtin(name: &str) -> bool {
    // Mach-O and COFF prepend an underscore.
    let is = |name: &str| BUILTINS.iter().any(|builtin| name.starts_with(builtin));
    is(name) || name.strip_prefix('_').is_some_and(is)
}

/// Whether an object format or linker defines the name.
fn is_of_the_format(name: &str) -> bool {
    [
        "__linear_memory",
        "__stack_pointer",
        "__indirect_function_table",
        "_GLOBAL_OFFSET_TABLE_",
        "_gp_disp",
        "__gnu_local_gp",
        ".TOC.",
    ]
    .contains(&name)
}
