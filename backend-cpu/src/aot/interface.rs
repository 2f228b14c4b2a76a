//! Interface of a program: the call structure with pointers to arguments, results and arena, and the arena's layout.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use xla_hlo::dynamic_result::dynamic_dimensions_of;
use xla_hlo::entity::EntityId;
use xla_hlo::{ArrayShape, ElementType, Error, Layout, Module, Result};
use xla_passes::buffers::{Allocation, AllocationKind};
use xla_service::thunks::{LibraryOp, ThunkKind, ThunkProgram};

use super::constants::{Constants, constant};
use super::externals::Function;
use super::identifiers::Fields;

/// Alignment of the arena in bytes.
pub(super) const ARENA_ALIGNMENT: u64 = 64;

/// Status codes of the entry function.
pub(super) mod status {
    /// The results are complete.
    pub const OK: u32 = 0;
    /// The call was cancelled; the contents of results are undefined.
    pub const CANCELLED: u32 = 1;
    /// The call is a null pointer.
    pub const NO_CALL: u32 = 2;
    /// The call was made with the header of another program or version.
    pub const WRONG_ABI: u32 = 3;
    /// The arena is too small, or a null pointer.
    pub const ARENA_TOO_SMALL: u32 = 4;
    /// The arena is misaligned.
    pub const ARENA_MISALIGNED: u32 = 5;
    /// A function of the application returned a nonzero number; the contents of results are undefined.
    pub const EXTERNAL_FAILED: u32 = 6;
    /// The constants are a null pointer.
    pub const NO_CONSTANTS: u32 = 7;
    /// The constants belong to other programs, are too short, or are misaligned.
    pub const WRONG_CONSTANTS: u32 = 8;
    /// The processor lacks features that the code requires.
    pub const WRONG_PROCESSOR: u32 = 9;
    /// Pointer number 0 is null; the code of pointer number `n` is larger by `n`.
    pub const NULL_POINTER: u32 = 16;
}

/// Field names of the structure that no array may have.
const RESERVED: &[&str] = &[
    "abi",
    "cancel",
    "arena",
    "arena_size",
    "reserved",
    "constants",
    "constants_size",
    "user_data",
    "external_status",
    "parallel_for",
    "pool",
];

/// Call of a program.
#[derive(Debug)]
pub(super) struct Interface {
    /// Name of the entry function.
    pub name: String,
    /// Pointers, in the order of the structure.
    pub fields: Vec<Field>,
    /// Location of each allocation.
    pub bases: Vec<Base>,
    /// Field with the random state, if the program draws random numbers.
    pub random_state: Option<usize>,
    /// Constants file, if the program reads one.
    pub constants: Option<Constants>,
    /// Functions of the application that the program calls.
    pub functions: Vec<Function>,
    /// Maximum number of threads of one call.
    pub threads: usize,
    /// Whether a call may fail because the processor lacks features.
    pub checks_processor: bool,
    /// Offset of the kernels' scratch memory in the arena.
    pub scratch: u64,
    /// Offset of the address table, the last part of the arena.
    pub table: u64,
    /// Size of the arena in bytes, final once the size of the table is known.
    pub arena_bytes: u64,
}

/// Pointer of the call.
#[derive(Debug)]
pub(super) struct Field {
    /// Name in C.
    pub name: String,
    pub shape: ArrayShape,
    /// Number and description of the argument, if it is one.
    pub argument: Option<(usize, String)>,
    /// Number of the result, if it is one.
    pub result: Option<usize>,
    /// Locations of the sizes of its dynamic dimensions.
    pub sizes: Vec<SizeAt>,
    /// Description of where the sizes of the array are, or which sizes it holds.
    pub note: String,
    /// Whether the program writes to the array.
    pub is_written: bool,
}

/// Location of the size of a dimension.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct SizeAt {
    pub dimension: usize,
    /// Index into `result_sizes`.
    pub element: usize,
}

/// Word of the structure after its pointers to arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Address of the contents of the constants file.
    Constants,
    /// Size of these contents in bytes.
    ConstantsSize,
    /// User data of the application, passed to its functions.
    UserData,
    /// Address for the nonzero status of a function of the application.
    ExternalStatus,
    /// Function of the application that distributes work over threads.
    ParallelFor,
    /// User data for that function.
    Pool,
}

impl Word {
    /// Returns the name in C.
    pub fn name(self) -> &'static str {
        match self {
            Word::Constants => "constants",
            Word::ConstantsSize => "constants_size",
            Word::UserData => "user_data",
            Word::ExternalStatus => "external_status",
            Word::ParallelFor => "parallel_for",
            Word::Pool => "pool",
        }
    }
}

/// Location of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Pointer of the call with this number.
    Field(usize),
    /// Offset in the arena, in bytes.
    Arena(u64),
    /// Constant in the object file.
    Constant,
    /// Offset in the constants file, in bytes.
    File(u64),
}

/// Optional parts of a call.
#[derive(Debug)]
pub(super) struct Extras<'a> {
    /// Constants file, if the program reads one.
    pub constants: Option<Constants>,
    /// Offset in the constants file for each allocation that is stored there.
    pub places: &'a [Option<u64>],
    /// Arguments that the program writes to.
    pub written: &'a HashSet<usize>,
    /// Functions of the application that the program calls.
    pub functions: Vec<Function>,
    /// Maximum number of threads of one call.
    pub threads: usize,
    /// Whether a call may fail because the processor lacks features.
    pub checks_processor: bool,
}

impl Interface {
    /// Creates the interface of a program whose kernels need `scratch_bytes` bytes of scratch memory.
    pub fn new(
        (module, program): (&Module, &ThunkProgram),
        name: String,
        extras: Extras<'_>,
        scratch_bytes: u64,
    ) -> Result<Interface> {
        let numbers = Numbers::new(program);
        let mut fields = arguments(program, extras.written);
        let mut end = 0_u64;
        let mut bases = Vec::with_capacity(program.assignment.allocations().len());
        let mut identifiers = Fields::new(RESERVED);
        for field in &mut fields {
            field.name = identifiers.name(&field.name, "argument");
        }
        for (number, allocation) in program.assignment.allocations().iter().enumerate() {
            bases.push(match &allocation.kind {
                AllocationKind::Parameter { .. } => Base::Field(numbers.argument(allocation)?),
                AllocationKind::Constant { .. } => {
                    constant(module, allocation)?;
                    extras.places.get(number).copied().flatten().map_or(Base::Constant, Base::File)
                }
                AllocationKind::Output { path } => {
                    let number = numbers.result(path)?;
                    fields.push(Field {
                        name: identifiers.name(&result_name(program, number), "result"),
                        shape: (*program.signature.outputs()[number].shape).clone(),
                        argument: None,
                        result: Some(number),
                        sizes: Vec::new(),
                        note: String::new(),
                        is_written: true,
                    });
                    Base::Field(fields.len() - 1)
                }
                AllocationKind::Temporary => {
                    let start = end;
                    end = after(start, allocation.size as u64)?;
                    Base::Arena(start)
                }
            });
        }
        for (number, output) in program.assignment.output_slices().iter().enumerate() {
            let whole = output.slice.offset == 0;
            match bases.get(output.slice.allocation.index()) {
                Some(&Base::Field(field)) if whole => fields[field].result = Some(number),
                _ => {
                    return Err(Error::internal(format!(
                        "result {number} has neither the memory of an argument nor its own"
                    )));
                }
            }
        }
        describe_sizes(program, &mut fields);
        let random_state = draws(program).then_some(fields.len());
        if random_state.is_some() {
            fields.push(Field {
                name: identifiers.name("random_state", "random_state"),
                shape: ArrayShape::new(ElementType::U64, [2]),
                argument: None,
                result: None,
                sizes: Vec::new(),
                note: String::new(),
                is_written: true,
            });
        }
        let table = after(end, scratch_bytes)?;
        Ok(Interface {
            name,
            fields,
            bases,
            random_state,
            constants: extras.constants,
            functions: extras.functions,
            threads: extras.threads,
            checks_processor: extras.checks_processor,
            scratch: end,
            table,
            arena_bytes: table,
        })
    }

    /// Enlarges the arena for the code of the same program for another processor.
    pub fn join(&mut self, other: &Interface) -> Result<()> {
        self.arena_bytes = self.arena_bytes.max(other.arena_bytes);
        match self.abi() == other.abi() {
            true => Ok(()),
            false => Err(Error::internal(format!("the call structure of {} depends on the processor", self.name))),
        }
    }

    /// Returns the words of the structure after its pointers to arrays.
    pub fn words(&self) -> Vec<Word> {
        let constants: &[Word] = if self.constants.is_some() { &[Word::Constants, Word::ConstantsSize] } else { &[] };
        let functions: &[Word] = if self.functions.is_empty() { &[] } else { &[Word::UserData, Word::ExternalStatus] };
        let threads: &[Word] = if self.threads > 1 { &[Word::ParallelFor, Word::Pool] } else { &[] };
        [constants, functions, threads].concat()
    }

    /// Returns the position of a word among the structure's pointers, if it is present.
    pub fn place(&self, word: Word) -> Option<usize> {
        self.words().iter().position(|&w| w == word).map(|place| self.fields.len() + place)
    }

    /// Sets the size of the address table in bytes.
    pub fn set_table_bytes(&mut self, bytes: u64) -> Result<()> {
        self.arena_bytes = after(self.table, bytes)?;
        Ok(())
    }

    /// Returns an error if the program's memory exceeds the address space of pointers of this size, or the limit.
    pub fn check_memory(&self, pointer_bytes: u64, limit: Option<u64>) -> Result<()> {
        let bytes = self.fields.iter().map(|field| field.bytes() as u64).fold(self.arena_bytes, u64::saturating_add);
        let bytes = bytes.saturating_add(self.constants.map_or(0, |constants| constants.size));
        let parts = if self.constants.is_some() {
            "arguments, results, constants and arena"
        } else {
            "arguments, results and arena"
        };
        let all = format!("{parts} take {bytes} bytes");
        // Differences of addresses are signed.
        if pointer_bytes < 8 && bytes >> (8 * pointer_bytes - 1) != 0 {
            let reach = 8 * pointer_bytes;
            return Err(Error::resource_exhausted(format!("{all}, more than {reach}-bit addresses reach")));
        }
        match limit.filter(|&limit| bytes > limit) {
            Some(limit) => Err(Error::resource_exhausted(format!("{all}, the limit is {limit}"))),
            None => Ok(()),
        }
    }

    /// Returns a hash of the structure's layout and of the arrays. A header of another program, or of another version
    /// of this one, has a different hash.
    pub fn abi(&self) -> u32 {
        let describe = |field: &Field| {
            let Field { name, shape, argument, result, note, is_written, .. } = field;
            let argument = argument.as_ref().map(|(number, _)| number);
            format!("{name} {shape} {argument:?} {result:?}{note} {is_written}\n")
        };
        let words = self.words().into_iter().map(|word| format!("{}\n", word.name()));
        let whole = [self.name.clone(), ARENA_ALIGNMENT.to_string()];
        let text = self.fields.iter().map(describe).chain(words).chain(whole);
        // 32-bit FNV-1a.
        text.collect::<String>()
            .bytes()
            .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

impl Field {
    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        self.shape.element_count()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.byte_size()
    }

    /// Returns the element type in C and in Rust.
    pub fn element_types(&self) -> (&'static str, &'static str) {
        element_types(self.shape.element_type())
    }

    /// Returns a readable role of the array: `argument 0 (parameter 0 "x") and result 1`.
    pub fn role(&self) -> String {
        let argument = self.argument.as_ref().map(|(_, text)| text.clone());
        let result = self.result.map(|number| format!("result {number}"));
        if argument.is_none() && result.is_none() {
            return "the state of the random number generator, lower word first, advanced by each call".to_string();
        }
        let overwritten = if self.is_written && self.result.is_none() { ", overwritten" } else { "" };
        argument.into_iter().chain(result).collect::<Vec<String>>().join(" and ") + overwritten + &self.note
    }

    /// Whether elements are in row-major order.
    pub fn is_row_major(&self) -> bool {
        self.shape.layout().is_none_or(Layout::is_row_major)
    }
}

/// Returns the element type in C and in Rust; formats without a native type are represented by an integer with their
/// bits.
pub(super) fn element_types(ty: ElementType) -> (&'static str, &'static str) {
    use ElementType::*;
    match ty {
        Pred => ("bool", "bool"),
        S8 | S4 | S2 => ("int8_t", "i8"),
        S16 => ("int16_t", "i16"),
        S32 => ("int32_t", "i32"),
        S64 => ("int64_t", "i64"),
        U16 | F16 | BF16 => ("uint16_t", "u16"),
        U32 => ("uint32_t", "u32"),
        U64 => ("uint64_t", "u64"),
        F32 => ("float", "f32"),
        F64 => ("double", "f64"),
        C64 => ("complex64", "[f32; 2]"),
        C128 => ("complex128", "[f64; 2]"),
        _ => ("uint8_t", "u8"),
    }
}

/// Whether a program draws random numbers.
fn draws(program: &ThunkProgram) -> bool {
    program
        .sequence
        .walk()
        .any(|thunk| matches!(&thunk.kind, ThunkKind::LibraryCall(call) if call.op == LibraryOp::RandomState))
}

/// Returns the aligned end of `bytes` bytes from `start` on.
fn after(start: u64, bytes: u64) -> Result<u64> {
    let end = start.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ARENA_ALIGNMENT));
    end.ok_or_else(|| Error::resource_exhausted("the arena is larger than the address space"))
}

/// Returns the name of a result: `result`, `result_0_1`, or `result_sizes` for the sizes of dynamic results.
fn result_name(program: &ThunkProgram, number: usize) -> String {
    match program.signature.results().get(number) {
        Some(leaf) => leaf.path.iter().fold("result".to_string(), |text, element| format!("{text}_{element}")),
        None => "result_sizes".to_string(),
    }
}

/// Adds the locations of the sizes of dynamic results to their fields.
fn describe_sizes(program: &ThunkProgram, fields: &mut [Field]) {
    let Some(at) = program.signature.sizes_output() else { return };
    let found = fields.iter().find(|field| field.result == Some(at));
    let Some(name) = found.map(|field| field.name.clone()) else { return };
    let mut meanings = Vec::new();
    for (number, leaf) in program.signature.results().iter().enumerate() {
        let mut sizes = Vec::new();
        for dimension in dynamic_dimensions_of(&leaf.shape) {
            sizes.push(SizeAt { dimension, element: meanings.len() });
            meanings.push(format!("of dimension {dimension} of result {number}"));
        }
        let places: Vec<String> = sizes.iter().map(|size| format!("{name}[{}]", size.element)).collect();
        let (places, shape) = (places.join(", "), (*leaf.shape).clone().with_layout(None));
        for field in fields.iter_mut().filter(|field| field.result == Some(number) && !sizes.is_empty()) {
            field.sizes = sizes.clone();
            field.note = format!(", {shape} of size {places}: the elements without gaps, then zeros up to the bound");
        }
    }
    for field in fields.iter_mut().filter(|field| field.result == Some(at)) {
        field.note = format!(", the sizes {}", meanings.join(", "));
    }
}

/// Returns the numbers of the arguments that a program writes to.
pub(super) fn written(program: &ThunkProgram) -> HashSet<usize> {
    let numbers = Numbers::new(program);
    let is_written = |allocation: &&Allocation| match &allocation.kind {
        AllocationKind::Parameter { output, written, .. } => output.is_some() || *written,
        _ => false,
    };
    let written = program.assignment.allocations().iter().filter(is_written);
    written.filter_map(|allocation| numbers.argument(allocation).ok()).collect()
}

/// Returns the fields of arguments, with names that may not be distinct yet.
fn arguments(program: &ThunkProgram, written: &HashSet<usize>) -> Vec<Field> {
    let leaves = program.signature.arguments().iter().enumerate();
    let field = |(number, leaf): (usize, &xla_service::signature::ArgumentLeaf)| Field {
        name: leaf.path.iter().fold(leaf.name.clone(), |name, element| format!("{name}_{element}")),
        shape: (*leaf.shape).clone(),
        argument: Some((number, leaf.describe(number))),
        result: None,
        sizes: Vec::new(),
        note: String::new(),
        is_written: written.contains(&number),
    };
    leaves.map(field).collect()
}

/// Numbers of arguments and results, by their paths in the program's signature.
struct Numbers<'a> {
    arguments: HashMap<(usize, &'a [usize]), usize>,
    results: HashMap<&'a [usize], usize>,
}

impl<'a> Numbers<'a> {
    fn new(program: &'a ThunkProgram) -> Numbers<'a> {
        let arguments = program.signature.arguments().iter().enumerate();
        let results = program.signature.outputs().iter().enumerate();
        // Reversed, so that the first of several equal paths takes precedence.
        Numbers {
            arguments: arguments.rev().map(|(number, a)| ((a.parameter, &a.path[..]), number)).collect(),
            results: results.rev().map(|(number, result)| (&result.path[..], number)).collect(),
        }
    }

    /// Returns the number of the argument in an allocation.
    fn argument(&self, allocation: &Allocation) -> Result<usize> {
        let AllocationKind::Parameter { leaf, .. } = &allocation.kind else {
            return Err(Error::internal("the memory of an argument is not that of a parameter"));
        };
        let found = self.arguments.get(&(leaf.parameter, &leaf.path[..])).copied();
        found.ok_or_else(|| Error::internal(format!("parameter {} has no argument", leaf.parameter)))
    }

    /// Returns the number of the result at a path.
    fn result(&self, path: &[usize]) -> Result<usize> {
        let found = self.results.get(path).copied();
        found.ok_or_else(|| Error::internal(format!("the program has no result at {path:?}")))
    }
}
