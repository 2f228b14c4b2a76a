//! `NAME.rs`: Rust bindings of the programs of an object file, one module with one function per program, for `no_std`.
//!
//! The types guarantee the requirements that the C header leaves to the caller: arrays have their sizes, the arena has
//! its alignment, and no two memories overlap.

use std::fmt::Write as _;

use super::constants::{self, Constants};
use super::description::Described;
use super::interface::{ARENA_ALIGNMENT, Field, Interface, Word, status};

/// Words that cannot be parameter names in Rust, not even as raw identifiers.
const NEVER_NAMES: &[&str] = &["self", "Self", "super", "crate", "_", "None", "Some", "Ok", "Err"];

/// Keywords, which are parameter names only as raw identifiers.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "dyn", "extern", "final", "fn", "gen", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "trait", "try", "type", "unsafe",
    "unsized", "use", "where", "yield",
];

/// Function that distributes a call's tasks over threads. It claims the task numbers itself, so that each task runs
/// exactly once, whatever the caller's function does.
const SHARE: &str = include_str!("bindings_threads.txt");

/// Returns the text of the bindings.
pub(super) fn text(described: &Described<'_>) -> String {
    let lines = [described.programs(), described.target()].into_iter().chain(described.needs());
    let mut text: String = lines.map(|line| format!("// {line}\n")).collect();
    for interface in described.interfaces {
        let parameters: Vec<Parameter<'_>> = interface.fields.iter().map(Parameter::new).collect();
        // Writing to a string does not fail.
        let _ = write_module(&mut text, interface, (&described.names.object, &parameters));
    }
    text
}

fn write_module(
    out: &mut String,
    interface: &Interface,
    (object, parameters): (&str, &[Parameter<'_>]),
) -> std::fmt::Result {
    let (symbol, size) = (&interface.name, interface.arena_bytes);
    let name = identifier(symbol);
    writeln!(out, "\n/// The program `{symbol}`.\npub mod {name} {{")?;
    writeln!(
        out,
        "    /// Memory that a call needs in addition to its arrays, {size} bytes, with arbitrary contents."
    )?;
    writeln!(out, "    #[repr(C, align({ARENA_ALIGNMENT}))]")?;
    writeln!(out, "    pub struct Arena([::core::mem::MaybeUninit<u8>; {size}]);\n")?;
    writeln!(out, "    impl Arena {{\n        /// Memory for calls, one at a time.")?;
    writeln!(
        out,
        "        pub const fn new() -> Arena {{\n            Arena([::core::mem::MaybeUninit::uninit(); {size}])\n        }}\n    }}\n"
    )?;
    writeln!(
        out,
        "    impl ::core::default::Default for Arena {{\n        fn default() -> Arena {{\n            Arena::new()\n        }}\n    }}\n"
    )?;
    if let Some(constants) = interface.constants {
        write_constants(out, constants, object)?;
    }
    write_call(out, interface, parameters)?;
    if interface.threads > 1 {
        out.push_str(SHARE);
    }
    write_run(out, interface, parameters)?;
    if interface.checks_processor {
        write_runs_here(out)?;
    }
    writeln!(out, "}}")
}

/// Writes the type of the contents of the constants file.
fn write_constants(out: &mut String, Constants { size, stamp }: Constants, object: &str) -> std::fmt::Result {
    let alignment = constants::ALIGNMENT;
    writeln!(
        out,
        "    /// The contents of `{object}.bin`.
    #[repr(C, align({alignment}))]
    pub struct Constants([u8; {size}]);

    impl Constants {{
        /// The contents, for a `static`: `Constants::new(*include_bytes!(\"{object}.bin\"))`. Panics if they are those of
        /// other programs.
        pub const fn new(bytes: [u8; {size}]) -> Constants {{
            assert!(Constants::are(&bytes), \"the constants are those of other programs\");
            Constants(bytes)
        }}

        /// The contents in place, such as a mapped file; `None` if they are those of other programs, or not aligned to
        /// {alignment} bytes.
        pub fn of(bytes: &[u8]) -> ::core::option::Option<&Constants> {{
            let fit = bytes.len() == {size} && bytes.as_ptr().addr() % {alignment} == 0 && Constants::are(bytes);
            // SAFETY: the structure has the size and the alignment of the bytes.
            if fit {{ ::core::option::Option::Some(unsafe {{ &*bytes.as_ptr().cast() }}) }} else {{ ::core::option::Option::None }}
        }}

        const fn are(bytes: &[u8]) -> bool {{
            u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) == 0x{stamp:08x}
        }}
    }}
"
    )
}

/// Writes the structure of the C interface, and the declaration of the entry function.
fn write_call(out: &mut String, interface: &Interface, parameters: &[Parameter<'_>]) -> std::fmt::Result {
    writeln!(
        out,
        "    #[repr(C)]\n    struct Call {{\n        abi: u32,\n        cancel: u8,\n        reserved: [u8; 3],"
    )?;
    writeln!(out, "        arena: *mut ::core::ffi::c_void,\n        arena_size: usize,")?;
    for (number, parameter) in parameters.iter().enumerate() {
        writeln!(out, "        pointer_{number}: *{} {},", parameter.pointer_kind(), parameter.array)?;
    }
    for word in interface.words() {
        writeln!(out, "        {}: {},", word.name(), rust_type(word))?;
    }
    writeln!(out, "    }}\n\n    unsafe extern \"C\" {{\n        #[link_name = \"{}\"]", interface.name)?;
    writeln!(out, "        fn entry(call: *const Call) -> i32;\n    }}\n")
}

/// Writes the function `run`, which is safe unless the program calls functions of the application.
fn write_run(out: &mut String, interface: &Interface, parameters: &[Parameter<'_>]) -> std::fmt::Result {
    let threads = interface.threads;
    match threads {
        1 => writeln!(out, "    /// Runs the program, on this thread.")?,
        _ => writeln!(
            out,
            "    /// Runs the program, on this thread and up to {} more that `parallel` provides.",
            threads - 1
        )?,
    }
    writeln!(out, "    ///")?;
    let is_safe = interface.functions.is_empty();
    if !is_safe {
        write_functions(out, interface)?;
    }
    for parameter in parameters {
        let Parameter { name, field, .. } = parameter;
        writeln!(out, "    /// - `{name}`: {}, `{}`", field.role(), field.shape)?;
    }
    writeln!(
        out,
        "    #[allow(clippy::too_many_arguments, non_snake_case)]\n    pub {}fn run(\n        arena: &mut Arena,",
        if is_safe { "" } else { "unsafe " }
    )?;
    if interface.constants.is_some() {
        writeln!(out, "        constants: &Constants,")?;
    }
    for Parameter { name, array, field } in parameters {
        let mutable = if field.is_written { "mut " } else { "" };
        writeln!(out, "        {name}: &{mutable}{array},")?;
    }
    if !is_safe {
        writeln!(out, "        user_data: *mut ::core::ffi::c_void,")?;
    }
    if threads > 1 {
        writeln!(out, "        parallel: &Parallel<'_>,")?;
    }
    let result = if is_safe { "" } else { "-> ::core::result::Result<(), i32> " };
    writeln!(out, "    ) {result}{{")?;
    if !is_safe {
        writeln!(out, "        let mut external_status = 0;")?;
    }
    writeln!(out, "        let call = Call {{\n            abi: 0x{:08x},\n            cancel: 0,", interface.abi())?;
    writeln!(out, "            reserved: [0; 3],\n            arena: ::core::ptr::from_mut(arena).cast(),")?;
    writeln!(out, "            arena_size: {},", interface.arena_bytes)?;
    for (number, Parameter { name, field, .. }) in parameters.iter().enumerate() {
        let from = if field.is_written { "from_mut" } else { "from_ref" };
        writeln!(out, "            pointer_{number}: ::core::ptr::{from}({name}),")?;
    }
    interface.words().into_iter().try_for_each(|word| write_word(out, word))?;
    writeln!(out, "        }};")?;
    writeln!(
        out,
        "        // SAFETY: the structure is that of the object file. Its pointers are valid, aligned, of the required sizes and"
    )?;
    writeln!(
        out,
        "        // disjoint, since they are references. The program accesses memory only through them, and keeps none."
    )?;
    writeln!(out, "        let status = unsafe {{ self::entry(&call) }};")?;
    if !is_safe {
        writeln!(out, "        if status == {} {{", status::EXTERNAL_FAILED)?;
        writeln!(out, "            return ::core::result::Result::Err(external_status);\n        }}")?;
    }
    if interface.checks_processor {
        let (wrong, name) = (status::WRONG_PROCESSOR, &interface.name);
        writeln!(
            out,
            "        assert!(status != {wrong}, \"the processor lacks features that {name} was compiled for\");"
        )?;
    }
    writeln!(out, "        // Another object file of that name was linked.")?;
    writeln!(out, "        assert!(status == 0, \"{} rejected its call: code {{status}}\");", interface.name)?;
    if !is_safe {
        writeln!(out, "        ::core::result::Result::Ok(())")?;
    }
    writeln!(out, "    }}")
}

/// Writes the function that checks whether the processor has the required features: a call with a null pointer.
fn write_runs_here(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "
    /// Whether this processor has the features that the program was compiled for; [`run`] panics otherwise.
    pub fn runs_here() -> bool {{
        // SAFETY: the function does not read through a null pointer.
        unsafe {{ self::entry(::core::ptr::null()) != {} }}
    }}",
        status::WRONG_PROCESSOR
    )
}

/// Writes a word of the call.
fn write_word(out: &mut String, word: Word) -> std::fmt::Result {
    match word {
        Word::Constants => writeln!(out, "            constants: ::core::ptr::from_ref(constants).cast(),"),
        Word::ConstantsSize => {
            writeln!(out, "            constants_size: ::core::mem::size_of::<Constants>(),")
        }
        Word::UserData => writeln!(out, "            user_data,"),
        Word::ExternalStatus => writeln!(out, "            external_status: &raw mut external_status,"),
        Word::ParallelFor => writeln!(out, "            parallel_for: share,"),
        Word::Pool => writeln!(out, "            pool: (&raw const parallel).cast_mut().cast(),"),
    }
}

/// Writes the documentation of the signature that the application's functions must have.
fn write_functions(out: &mut String, interface: &Interface) -> std::fmt::Result {
    let names: Vec<String> = interface.functions.iter().map(|function| format!("`{}`", function.symbol)).collect();
    for line in [
        "The error is the number that a function of the application returned, if it is not 0.",
        "",
        "# Safety",
        "",
        &format!(
            "Functions of the application have this signature, and receive `user_data`; they are {}.",
            names.join(", ")
        ),
        "",
        "```text",
        "unsafe extern \"C\" fn(operands: *const *const c_void, results: *const *mut c_void, config: *const c_char,",
        "    config_size: usize, user_data: *mut c_void) -> i32",
        "```",
        "",
        "They write only the results, which the C header lists, read only the results and the operands, and do",
        "not unwind.",
        "",
        "# Arguments",
        "",
    ] {
        writeln!(out, "    ///{}{line}", if line.is_empty() { "" } else { " " })?;
    }
    Ok(())
}

/// Returns the Rust type of a word of the call.
fn rust_type(word: Word) -> &'static str {
    match word {
        Word::Constants => "*const ::core::ffi::c_void",
        Word::ConstantsSize => "usize",
        Word::UserData | Word::Pool => "*mut ::core::ffi::c_void",
        Word::ExternalStatus => "*mut i32",
        Word::ParallelFor => "ParallelFor",
    }
}

/// Parameter of the function `run`.
struct Parameter<'a> {
    name: String,
    /// Array type in Rust.
    array: String,
    field: &'a Field,
}

impl<'a> Parameter<'a> {
    fn new(field: &'a Field) -> Parameter<'a> {
        Parameter { name: identifier(&field.name), array: array_type(field), field }
    }

    fn pointer_kind(&self) -> &'static str {
        if self.field.is_written { "mut" } else { "const" }
    }
}

/// Returns a type of nested arrays if elements are in row-major order; otherwise of one array with all elements in
/// memory order.
fn array_type(field: &Field) -> String {
    let (_, element) = field.element_types();
    if field.is_row_major() {
        return field.shape.dims().iter().rev().fold(element.to_string(), |inner, dim| format!("[{inner}; {dim}]"));
    }
    format!("[{element}; {}]", field.elements())
}

/// Converts a C name to a Rust name.
fn identifier(name: &str) -> String {
    match name {
        _ if NEVER_NAMES.contains(&name) => format!("{name}_"),
        _ if KEYWORDS.contains(&name) => format!("r#{name}"),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_c_become_names_of_rust() {
        let names = ["x", "type", "self", "match", "Self"].map(identifier);
        assert_eq!(names, ["x", "r#type", "self_", "r#match", "Self_"]);
    }
}
