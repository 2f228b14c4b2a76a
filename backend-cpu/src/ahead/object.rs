//! Object files, looked into: the names that they call.

use std::collections::BTreeSet;

use object::{BinaryFormat, Object, ObjectSymbol, pe};
use xla_hlo::{Error, Result};

/// Beginnings of the names of functions that every compiler for a processor brings with it (compiler-rt, libgcc), for
/// arithmetic that the processor lacks.
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

/// Names of functions outside of an object, in order.
#[derive(Debug)]
pub(super) struct Undefined {
    /// All of them, as the object has them.
    pub all: Vec<String>,
    /// Those that compilers bring with them.
    pub builtins: Vec<String>,
}

/// Bytes of a symbol in an object file of Windows, and places in it: its section's number, its class.
const COFF_SYMBOL: usize = 18;
const COFF_SECTION: usize = 12;
const COFF_CLASS: usize = 16;

/// Hides the reference to `_fltused` in an object file of Windows. LLVM makes one in code with floating-point numbers:
/// it links the C library's number formatting. Without that library it is not defined. No code reads it.
pub(super) fn without_fltused(mut code: Vec<u8>) -> Result<Vec<u8>> {
    let unreadable =
        |reason: &dyn std::fmt::Display| Error::internal(format!("the object file cannot be read: {reason}"));
    let object = object::File::parse(&*code).map_err(|reason| unreadable(&reason))?;
    if object.format() != BinaryFormat::Coff {
        return Ok(code);
    }
    let names = ["_fltused", "__fltused"];
    let symbol =
        object.symbols().find(|symbol| symbol.is_undefined() && symbol.name().is_ok_and(|n| names.contains(&n)));
    let Some(number) = symbol.map(|symbol| symbol.index().0) else { return Ok(code) };
    // The file's header has the place of the symbols.
    let table = code.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes).unwrap_or_default();
    let start = table as usize + number * COFF_SYMBOL;
    let symbol = code.get_mut(start..start + COFF_SYMBOL).ok_or_else(|| unreadable(&"it ends before its symbols"))?;
    symbol[COFF_SECTION..][..2].copy_from_slice(&pe::IMAGE_SYM_ABSOLUTE.to_le_bytes()[..2]);
    symbol[COFF_CLASS] = pe::IMAGE_SYM_CLASS_STATIC;
    Ok(code)
}

/// Names of functions outside of the object, in order: these of the application, builtins of compilers, and nothing
/// else.
pub(super) fn undefined(code: &[u8], application: &BTreeSet<&str>) -> Result<Undefined> {
    let unreadable = |reason| Error::internal(format!("the object file cannot be read: {reason}"));
    let object = object::File::parse(code).map_err(unreadable)?;
    let mut names = Vec::new();
    for symbol in object.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol.name().map_err(unreadable)?;
        if !name.is_empty() && !is_of_the_format(name) {
            names.push(name.to_string());
        }
    }
    names.sort();
    names.dedup();
    // Mach-O and COFF write an underscore more.
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
        "the object would call {}, which no compiler brings with it; name a processor with floating-point units for it",
        foreign.join(", ")
    )))
}

fn is_builtin(name: &str) -> bool {
    // Mach-O and COFF write an underscore more.
    let is = |name: &str| BUILTINS.iter().any(|builtin| name.starts_with(builtin));
    is(name) || name.strip_prefix('_').is_some_and(is)
}

/// Names that object formats and linkers define themselves.
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
