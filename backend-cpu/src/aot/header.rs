//! `NAME.h`: C and C++ header for calling an object file.

use std::collections::HashSet;
use std::fmt::Write as _;

use xla_hlo::{ElementType, Error, Result};
use xla_service::thunks::ArraySlice;

use super::constants;
use super::description::Described;
use super::externals::Function;
use super::identifiers::Names;
use super::interface::{ARENA_ALIGNMENT, Field, Interface, Word, element_types, status};

/// Returns the text of the header; [`Error::InvalidArgument`] if the programs' names produce two macros of the same
/// name.
pub(super) fn text(described: &Described<'_>) -> Result<String> {
    let mut text = introduction(described);
    text += &functions(described.functions);
    for interface in described.interfaces {
        let mut header = Header { text: String::new(), interface, names: described.names, name: &interface.name };
        if described.interfaces.len() > 1 {
            header.line(format!("/* ---- {} ---- */\n", header.name));
        }
        header.constants();
        header.call();
        header.class();
        text += &header.text;
    }
    text += "\n#endif\n";
    let mut macros = HashSet::new();
    let defined = text.lines().filter_map(|line| line.strip_prefix("#define ")?.split_whitespace().next());
    match defined.into_iter().find(|name| !macros.insert(*name)) {
        Some(name) => Err(Error::invalid_argument(format!(
            "the header would define {name} twice: choose symbols of which none is a prefix of another"
        ))),
        None => Ok(text),
    }
}

/// Returns the text before the programs.
fn introduction(described: &Described<'_>) -> String {
    let name = match &described.names.entries[..] {
        [entry] => entry.clone(),
        _ => "PROGRAM".to_string(),
    };
    let guard = format!("{}_H", described.names.object).to_ascii_uppercase();
    let needs: String = described.needs().iter().map(|needs| format!(" * {needs}\n")).collect();
    format!(
        "/* {}
 * {}
 *
 * Set the pointers of a {name}_call and pass it to {name}(). Arrays are in row-major order unless stated
 * otherwise, aligned to their elements, and do not overlap. A call uses only its structure: calls with
 * different arenas may run at the same time.
{needs} */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

",
        described.programs(),
        described.target()
    )
}

/// Declares the functions of the application, which are in no namespace.
fn functions(functions: &[Function]) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let declared: String = functions.iter().map(function).collect();
    format!(
        "/* Functions of the application, for custom calls. `operands` and `results` are the addresses of arrays, in the
 * order of the custom call. They do not overlap, except that a result that the program aliases to an operand is at
 * the same address. `config` is the call's configuration (backend_config), followed by a zero that `config_size`
 * does not count; `user_data` is that of the program's call. A result other than 0 ends the program's call. */
#ifdef __cplusplus
extern \"C\" {{
#endif
{declared}#ifdef __cplusplus
}}
#endif

"
    )
}

/// Declares a function, with the arrays of its calls.
fn function(Function { symbol, target, calls }: &Function) -> String {
    let mut arrays = String::new();
    for call in calls {
        // Writing to a string does not fail.
        let _ = writeln!(arrays, " * %{}:", uncommented(&call.name));
        for (kind, constant, of_kind) in [("operands", "const ", &call.operands), ("results", "", &call.results)] {
            for (number, array) in of_kind.iter().enumerate() {
                let _ = writeln!(arrays, " *   {kind}[{number}]: {constant}{}", array_text(array));
            }
        }
    }
    let target = uncommented(target);
    format!(
        "
/* Custom call \"{target}\".
{arrays} */
int32_t {symbol}(const void *const *operands, void *const *results, const char *config, size_t config_size,
    void *user_data);
"
    )
}

/// Part of the header for one program.
struct Header<'a> {
    text: String,
    interface: &'a Interface,
    names: &'a Names,
    name: &'a str,
}

impl Header<'_> {
    /// Appends a line. Writing to a string does not fail.
    fn line(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Returns the name of a macro.
    fn capitals(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.name).to_ascii_uppercase()
    }

    fn constants(&mut self) {
        let interface = self.interface;
        let codes = [
            ("OK", status::OK, "The results are complete."),
            ("CANCELLED", status::CANCELLED, "`cancel` was set; results are undefined."),
            ("NO_CALL", status::NO_CALL, "The call is a null pointer."),
            (
                "WRONG_ABI",
                status::WRONG_ABI,
                "`abi` is not that of this header, or the header not that of the object file.",
            ),
            ("ARENA_TOO_SMALL", status::ARENA_TOO_SMALL, "`arena` is null, or `arena_size` too small."),
            ("ARENA_MISALIGNED", status::ARENA_MISALIGNED, "`arena` is not aligned."),
        ];
        let external = (
            "EXTERNAL_FAILED",
            status::EXTERNAL_FAILED,
            "A function of the application returned a number other than 0; results are undefined.",
        );
        let external = Some(external).filter(|_| !interface.functions.is_empty());
        let of_constants = [
            ("NO_CONSTANTS", status::NO_CONSTANTS, "`constants` is a null pointer."),
            (
                "WRONG_CONSTANTS",
                status::WRONG_CONSTANTS,
                "`constants` are those of other programs, not aligned, or `constants_size` is too small.",
            ),
        ];
        let of_constants = of_constants.into_iter().filter(|_| interface.constants.is_some());
        let after = if external.is_some() { "OK, CANCELLED and EXTERNAL_FAILED" } else { "the first two" };
        self.line(format!("/* Results of a call; with any other than {after} nothing was written. */"));
        let of_processor = (
            "WRONG_PROCESSOR",
            status::WRONG_PROCESSOR,
            "The processor lacks features that the code was compiled for. Checked first, also for a null pointer.",
        );
        let of_processor = Some(of_processor).filter(|_| interface.checks_processor);
        for (name, code, meaning) in codes.into_iter().chain(external).chain(of_constants).chain(of_processor) {
            let name = self.capitals(name);
            self.line(format!("#define {name} {code} /* {meaning} */"));
        }
        for (number, field) in interface.fields.iter().enumerate().filter(|(_, field)| field.elements() > 0) {
            let name = self.capitals(&format!("NULL_{}", field.name));
            self.line(format!(
                "#define {name} {} /* `{}` is a null pointer. */",
                status::NULL_POINTER + number as u32,
                field.name
            ));
        }
        self.line("\n/* Value of `abi`: identifies the structure and the arrays. */");
        let (abi, size, alignment) =
            (self.capitals("ABI"), self.capitals("ARENA_SIZE"), self.capitals("ARENA_ALIGNMENT"));
        self.line(format!("#define {abi} UINT32_C(0x{:08x})", interface.abi()));
        self.line("\n/* Memory that a call needs in addition to its arrays, in bytes. */");
        self.line(format!("#define {size} {}\n#define {alignment} {ARENA_ALIGNMENT}", interface.arena_bytes));
        if let Some(file) = interface.constants {
            let [size, alignment] = ["CONSTANTS_SIZE", "CONSTANTS_ALIGNMENT"].map(|suffix| self.capitals(suffix));
            self.line(format!("\n/* The file {}.bin, in bytes. */", self.names.object));
            self.line(format!("#define {size} {}\n#define {alignment} {}", file.size, constants::ALIGNMENT));
        }
        if interface.threads > 1 {
            let threads = self.capitals("THREADS");
            self.line(format!("\n/* Threads that a call may use. */\n#define {threads} {}", interface.threads));
        }
        self.line("\n/* Arrays: number of elements, number of dimensions, dimensions. */");
        for field in &interface.fields {
            let name = self.capitals(&field.name);
            let dims: Vec<String> = field.shape.dims().iter().map(ToString::to_string).collect();
            self.line(format!("#define {name}_ELEMENTS {}\n#define {name}_RANK {}", field.elements(), dims.len()));
            if !dims.is_empty() {
                self.line(format!("#define {name}_DIMS {{{}}}", dims.join(", ")));
            }
        }
    }

    fn call(&mut self) {
        let interface = self.interface;
        let name = self.name.to_string();
        self.line("\n#ifdef __cplusplus");
        for part in &self.names.namespace {
            self.line(format!("namespace {part} {{"));
        }
        self.line("extern \"C\" {\n#endif\n");
        for (element, real) in [(ElementType::C64, "float"), (ElementType::C128, "double")] {
            if interface.fields.iter().any(|field| field.shape.element_type() == element) {
                let bits = element.bit_width();
                self.line(format!(
                    "typedef struct {name}_complex{bits} {{ {real} real, imaginary; }} {name}_complex{bits};\n"
                ));
            }
        }
        self.line(format!("/* A call. Set `abi` to {}, `cancel` to 0, and all pointers. */", self.capitals("ABI")));
        self.line(format!("typedef struct {name}_call {{\n  uint32_t abi;"));
        self.line(
            "  volatile uint8_t cancel; /* Set to 1 while the program runs, from any thread, to leave its loops. */",
        );
        self.line("  uint8_t reserved[3];");
        self.line(
            "  void *arena; /* Aligned memory of `arena_size` bytes, with arbitrary contents. */\n  size_t arena_size;",
        );
        for field in &interface.fields {
            let constant = if field.is_written { "" } else { "const " };
            let ty = c_type(&name, field);
            self.line(format!("  {constant}{ty} *{}; /* {} */", field.name, role(field)));
        }
        for word in interface.words() {
            self.line(format!("  {}", self.word(word)));
        }
        self.line(format!("}} {name}_call;\n"));
        self.line("/* Runs the program. */");
        self.line(format!("int32_t {name}(const {name}_call *call);\n"));
    }

    /// Returns the declaration of a word of the structure.
    fn word(&self, word: Word) -> String {
        let (name, threads) = (word.name(), self.interface.threads);
        match word {
            Word::Constants => {
                format!("const void *{name}; /* Contents of {}.bin, mapped or read, aligned. */", self.names.object)
            }
            Word::ConstantsSize => format!("size_t {name}; /* Size of `constants` in bytes. */"),
            Word::UserData => format!("void *{name}; /* Passed to the application's functions. */"),
            Word::ExternalStatus => {
                format!("int32_t *{name}; /* Receives the number that a failed function returned; may be null. */")
            }
            Word::ParallelFor => format!(
                "/* Calls task(data, number) once for each number below `count`, which is {threads} at most, on any threads,
   * and returns when all calls have returned; null: the program runs on one thread. */
  void (*{name})(void *pool, size_t count, void (*task)(void *data, size_t number), void *data);"
            ),
            Word::Pool => format!("void *{name}; /* Passed to parallel_for. */"),
        }
    }

    /// Writes the C++ class and the end of the part.
    fn class(&mut self) {
        let name = self.name.to_string();
        let (abi, size, alignment) =
            (self.capitals("ABI"), self.capitals("ARENA_SIZE"), self.capitals("ARENA_ALIGNMENT"));
        let memory = if self.interface.arena_bytes == 0 { "1".to_string() } else { size.clone() };
        self.line("#ifdef __cplusplus\n}\n");
        self.line("/* A call with an arena of its own: set the pointers, then run(). */");
        self.line(format!("class {name}_program : public {name}_call {{\n public:"));
        self.line(format!("  {name}_program() : {name}_call() {{\n    abi = {abi};\n    arena = memory;\n    arena_size = {size};\n  }}"));
        self.line(format!("  {name}_program(const {name}_program &) = delete;"));
        self.line(format!("  {name}_program &operator=(const {name}_program &) = delete;"));
        self.line(format!("  int32_t run() {{ return {name}(this); }}\n"));
        self.line(format!(" private:\n  alignas({alignment}) unsigned char memory[{memory}];\n}};"));
        for part in self.names.namespace.iter().rev() {
            self.line(format!("}} /* {part} */"));
        }
        self.line("#endif");
    }
}

fn c_type(name: &str, field: &Field) -> String {
    match field.shape.element_type().is_complex() {
        true => format!("{name}_{}", field.element_types().0),
        false => field.element_types().0.to_string(),
    }
}

/// Returns a readable role and shape of an array: `argument 0 (parameter 0 "x"), f32[2,3]`.
fn role(field: &Field) -> String {
    let order = if field.is_row_major() { "" } else { " (in this order)" };
    format!("{}, {}{order}", uncommented(&field.role()), field.shape)
}

/// Returns the type and shape of a function's array.
fn array_text(ArraySlice { shape, .. }: &ArraySlice) -> String {
    let ty = match shape.element_type() {
        ElementType::C64 => "float (*)[2]".to_string(),
        ElementType::C128 => "double (*)[2]".to_string(),
        other => format!("{} *", element_types(other).0),
    };
    format!("{ty}, {shape}")
}

/// Makes a text safe inside a comment: it neither ends the comment nor starts a new line.
fn uncommented(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace(|c: char| c.is_control(), " ")
}
