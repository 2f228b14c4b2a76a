//! `NAME.json`: the interface of an object file for other tools.

use serde::Serialize;
use xla_hlo::{Error, Result};
use xla_llvm::target::{Target, llvm_version};

use super::entry::CallLayout;
use super::interface::{ARENA_ALIGNMENT, Field, Interface};

/// An object file, to be described.
pub(super) struct Described<'a> {
    pub interface: &'a Interface,
    pub target: &'a Target,
    /// Functions outside of it that it calls.
    pub externals: &'a [String],
}

impl Described<'_> {
    /// The target in one line, for people.
    pub fn target(&self) -> String {
        let Described { target, .. } = self;
        let cpu = if target.cpu().is_empty() { "generic" } else { target.cpu() };
        let features = features(target.features());
        format!("Target {}, processor {cpu}{features}; LLVM {}.", target.triple(), llvm_version())
    }
}

#[derive(Serialize)]
struct Description<'a> {
    name: &'a str,
    abi: u32,
    target: TargetNames<'a>,
    arena: Arena,
    /// The pointers of the call, in order.
    pointers: Vec<Pointer<'a>>,
    externals: &'a [String],
}

#[derive(Serialize)]
struct TargetNames<'a> {
    llvm: String,
    triple: &'a str,
    cpu: &'a str,
    features: &'a str,
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
    /// Offset in the structure of the call.
    offset: u64,
    c_type: &'a str,
    element_type: String,
    dimensions: &'a [usize],
    minor_to_major: Vec<usize>,
    bytes: usize,
    argument: Option<usize>,
    result: Option<usize>,
    written: bool,
    /// Whether it is the state that random numbers are drawn from.
    random_state: bool,
}

/// The description as JSON.
pub(super) fn json(described: &Described<'_>) -> Result<Vec<u8>> {
    let Described { interface, target, externals } = *described;
    let layout = CallLayout::new(target.pointer_bytes());
    let description = Description {
        name: &interface.names.entry,
        abi: interface.abi(),
        target: TargetNames {
            llvm: llvm_version(),
            triple: target.triple(),
            cpu: target.cpu(),
            features: target.features(),
            pointer_bytes: target.pointer_bytes(),
            big_endian: target.is_big_endian(),
        },
        arena: Arena { size: interface.arena_bytes, alignment: ARENA_ALIGNMENT },
        pointers: interface
            .fields
            .iter()
            .enumerate()
            .map(|(number, field)| pointer(layout.field(number), field, interface.random_state == Some(number)))
            .collect(),
        externals,
    };
    serde_json::to_vec_pretty(&description)
        .map_err(|error| Error::internal(format!("the description cannot be written: {error}")))
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
    }
}

/// Features for people, after the processor.
fn features(features: &str) -> String {
    // All of a machine's are hundreds.
    match features.split(',').filter(|feature| !feature.is_empty()).count() {
        0 => String::new(),
        1..=12 => format!(" with {}", features.replace(',', " ")),
        _ => " with all features of the machine that compiled it".to_string(),
    }
}
