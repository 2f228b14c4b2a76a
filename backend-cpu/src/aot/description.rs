//! `NAME.json`: description of an object file's interface, for other tools.

use serde::Serialize;
use xla_hlo::{Error, Result};
use xla_llvm::target::{Target, llvm_version};
use xla_service::thunks::ArraySlice;

use super::constants::{self, Constants};
use super::entry::CallLayout;
use super::externals::Function;
use super::identifiers::Names;
use super::interface::{ARENA_ALIGNMENT, Field, Interface, SizeAt, Word, element_types};
use super::object::Undefined;

/// Object file to describe.
pub(super) struct Described<'a> {
    pub names: &'a Names,
    /// Calls of the programs.
    pub interfaces: &'a [Interface],
    /// Functions of the application that the programs call.
    pub functions: &'a [Function],
    /// Constants file, if there is one.
    pub constants: Option<Constants>,
    /// Processors that the object has code for; all have the same triple.
    pub targets: &'a [Target],
    /// Undefined functions that the object calls.
    pub undefined: &'a Undefined,
}

impl Described<'_> {
    /// Returns one readable line about the programs and their object.
    pub fn programs(&self) -> String {
        let Names { object, entries, .. } = self.names;
        match &entries[..] {
            [entry] => format!("{entry}: a program compiled ahead of time, in {object}.o."),
            entries => format!("{}: programs compiled ahead of time, in {object}.o.", entries.join(", ")),
        }
    }

    /// Returns one readable line about the target.
    pub fn target(&self) -> String {
        let names: Vec<String> = self.targets.iter().map(processor).collect();
        let names = match &names[..] {
            [name] => format!("processor {name}"),
            names => format!("processors {}; the last one that fits is chosen", names.join(", ")),
        };
        format!("Target {}, {names}; LLVM {}.", self.targets[0].triple(), llvm_version())
    }

    /// Returns readable lines about the undefined functions that the object calls.
    pub fn needs(&self) -> Vec<String> {
        let functions: Vec<&str> = self.functions.iter().map(|function| function.symbol.as_str()).collect();
        let kinds = [
            ("of the application, for custom calls", functions.join(", ")),
            ("of the compiler's own library", self.undefined.builtins.join(", ")),
        ];
        let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
        let lines: Vec<String> =
            kinds.map(|(kind, names)| format!("The object file needs these functions {kind}: {names}.")).collect();
        if lines.is_empty() {
            vec!["The object file needs no other function, and no library.".to_string()]
        } else {
            lines
        }
    }
}

/// Returns a readable description of a target's processor and features.
fn processor(target: &Target) -> String {
    let cpu = if target.cpu().is_empty() { "generic" } else { target.cpu() };
    format!("{cpu}{}", features(target.features()))
}

#[derive(Serialize)]
struct Description<'a> {
    name: &'a str,
    target: TargetNames<'a>,
    programs: Vec<ProgramOf<'a>>,
    constants: Option<FileOf>,
    /// Names of all undefined functions.
    externals: &'a [String],
    /// Functions that the application provides for custom calls.
    functions: Vec<FunctionOf<'a>>,
}

/// Constants file.
#[derive(Serialize)]
struct FileOf {
    file: String,
    size: u64,
    alignment: u64,
    /// Hash at the start of the file.
    stamp: u32,
}

/// Program of the object.
#[derive(Serialize)]
struct ProgramOf<'a> {
    name: &'a str,
    abi: u32,
    arena: Arena,
    /// Maximum number of threads of one call.
    threads: usize,
    /// Pointers of the call, in order.
    pointers: Vec<Pointer<'a>>,
    /// Words of the call after the pointers.
    words: Vec<NamedWord>,
}

#[derive(Serialize)]
struct TargetNames<'a> {
    llvm: String,
    triple: &'a str,
    /// Processor, or several separated by commas, and their features.
    cpu: String,
    features: String,
    /// Whether a call may fail because the processor lacks features.
    checks_processor: bool,
    pointer_bytes: u32,
    big_endian: bool,
}

#[derive(Serialize)]
struct Arena {
    size: u64,
    alignment: u64,
}

#[derive(Serialize)]
struct Pointer<'a> {
    name: &'a str,
    /// Offset in the call structure.
    offset: u64,
    c_type: &'a str,
    element_type: String,
    dimensions: &'a [usize],
    minor_to_major: Vec<usize>,
    bytes: usize,
    argument: Option<usize>,
    result: Option<usize>,
    written: bool,
    /// Whether it is the state of the random number generator.
    random_state: bool,
    /// Locations of the sizes of a result's dynamic dimensions.
    #[serde(skip_serializing_if = "<[SizeAt]>::is_empty")]
    sizes: &'a [SizeAt],
}

/// Word of the call.
#[derive(Serialize)]
struct NamedWord {
    name: &'static str,
    /// Offset in the call structure.
    offset: u64,
}

/// Function of the application.
#[derive(Serialize)]
struct FunctionOf<'a> {
    symbol: &'a str,
    custom_call_target: &'a str,
    calls: Vec<CallOf<'a>>,
}

/// Configuration of a call: text if it is UTF-8, otherwise a list of numbers.
#[derive(Serialize)]
#[serde(untagged)]
enum Config<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

#[derive(Serialize)]
struct CallOf<'a> {
    instruction: &'a str,
    operands: Vec<Array<'a>>,
    results: Vec<Array<'a>>,
    config: Config<'a>,
}

#[derive(Serialize)]
struct Array<'a> {
    c_type: &'a str,
    element_type: String,
    dimensions: &'a [usize],
    minor_to_major: Vec<usize>,
    bytes: usize,
}

/// Returns the description as JSON.
pub(super) fn json(described: &Described<'_>) -> Result<Vec<u8>> {
    let Described { names, interfaces, functions, constants, targets, undefined } = *described;
    let target = &targets[0];
    let layout = CallLayout::new(target.pointer_bytes());
    let description = Description {
        name: &names.object,
        target: TargetNames {
            llvm: llvm_version(),
            triple: target.triple(),
            cpu: joined(targets.iter().map(Target::cpu)),
            features: joined(targets.iter().map(Target::features)),
            checks_processor: interfaces.iter().any(|interface| interface.checks_processor),
            pointer_bytes: target.pointer_bytes(),
            big_endian: target.is_big_endian(),
        },
        programs: interfaces.iter().map(|interface| program(interface, &layout)).collect(),
        constants: constants.map(|Constants { size, stamp }| FileOf {
            file: format!("{}.bin", names.object),
            size,
            alignment: constants::ALIGNMENT,
            stamp,
        }),
        externals: &undefined.all,
        functions: functions.iter().map(function).collect(),
    };
    serde_json::to_vec_pretty(&description)
        .map_err(|error| Error::internal(format!("the description cannot be written: {error}")))
}

/// Joins the distinct words with commas.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join(",")
}

fn program<'a>(interface: &'a Interface, layout: &CallLayout) -> ProgramOf<'a> {
    let fields = interface.fields.iter().enumerate();
    ProgramOf {
        name: &interface.name,
        abi: interface.abi(),
        arena: Arena { size: interface.arena_bytes, alignment: ARENA_ALIGNMENT },
        threads: interface.threads,
        pointers: fields
            .map(|(number, field)| pointer(layout.field(number), field, interface.random_state == Some(number)))
            .collect(),
        words: interface.words().into_iter().filter_map(|word| named_word(interface, layout, word)).collect(),
    }
}

fn pointer(offset: u64, field: &Field, random_state: bool) -> Pointer<'_> {
    Pointer {
        name: &field.name,
        offset,
        c_type: field.element_types().0,
        element_type: field.shape.element_type().to_string(),
        dimensions: field.shape.dims(),
        minor_to_major: field.shape.minor_to_major(),
        bytes: field.bytes(),
        argument: field.argument.as_ref().map(|(number, _)| *number),
        result: field.result,
        written: field.is_written,
        random_state,
        sizes: &field.sizes,
    }
}

fn named_word(interface: &Interface, layout: &CallLayout, word: Word) -> Option<NamedWord> {
    interface.place(word).map(|place| NamedWord { name: word.name(), offset: layout.field(place) })
}

fn function(function: &Function) -> FunctionOf<'_> {
    let calls = function.calls.iter().map(|call| CallOf {
        instruction: &call.name,
        operands: call.operands.iter().map(array).collect(),
        results: call.results.iter().map(array).collect(),
        config: std::str::from_utf8(&call.config).map_or(Config::Bytes(&call.config), Config::Text),
    });
    FunctionOf { symbol: &function.symbol, custom_call_target: &function.target, calls: calls.collect() }
}

fn array(ArraySlice { shape, .. }: &ArraySlice) -> Array<'_> {
    Array {
        c_type: element_types(shape.element_type()).0,
        element_type: shape.element_type().to_string(),
        dimensions: shape.dims(),
        minor_to_major: shape.minor_to_major(),
        bytes: shape.byte_size(),
    }
}

/// Returns a readable list of features, to append to the processor.
fn features(features: &str) -> String {
    // A list of all features of a machine would have hundreds of entries.
    match features.split(',').filter(|feature| !feature.is_empty()).count() {
        0 => String::new(),
        1..=12 => format!(" with {}", features.replace(',', " ")),
        _ => " with all features of the machine that compiled it".to_string(),
    }
}
