//! Generator of the book's page of operations, from the opcode table and the programs of [`coverage`](crate::coverage).

use std::fmt::Write;

use xla_hlo::ops::{Arity, Family};
use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Opcode, VerifiedModule};

use crate::coverage::{Recipe, program_text, recipe};

/// Families in the order of the page, with descriptions.
const FAMILIES: &[(Family, &str)] = &[
    (Family::Structure, "Parameters, constants, tuples"),
    (Family::Elementwise, "One element in, one element out"),
    (Family::Movement, "Elements change place, not value"),
    (Family::Dot, "Contractions"),
    (Family::Convolution, "Convolutions"),
    (Family::Reduction, "Reductions over dimensions"),
    (Family::Window, "Reductions over sliding windows"),
    (Family::Indexing, "Gather and scatter"),
    (Family::Sorting, "Sorting and top-k"),
    (Family::ControlFlow, "Calls, loops, branches, fusions"),
    (Family::Random, "Random bits and numbers, and their users"),
    (Family::Transform, "Fourier transforms"),
    (Family::Linalg, "Decompositions and systems of equations"),
    (Family::Normalization, "Batch normalisation and its gradient"),
    (Family::Dynamic, "Dynamic array sizes"),
    (Family::Custom, "Calls to functions that HLO does not define"),
    (Family::Token, "Order by tokens, and traffic with the host"),
    (Family::Async, "Asynchronous operations"),
    (Family::Collective, "What the devices of a program do together"),
];

/// Returns the page as Markdown: for each operation its operands, an example, and the element types that it accepts.
pub fn page() -> String {
    let mut text = String::from(
        "# Operations\n\nWritten by `cargo xtask book` out of the op table (`xla-hlo/src/ops/opcode.rs`) and the programs by which the coverage \
         table tries each operation. Their semantics are those of OpenXLA; what the evaluator in `xla-hlo/src/ops` computes is what \
         every backend must.\n",
    );
    for (family, what) in FAMILIES {
        let _ = write!(text, "\n## {what}\n");
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.family() == *family) {
            text += &entry(opcode);
        }
    }
    text
}

fn entry(opcode: Opcode) -> String {
    let operands = match opcode.arity() {
        Arity::Exactly(0) => "No operands".to_string(),
        Arity::Exactly(1) => "1 operand".to_string(),
        Arity::Exactly(count) => format!("{count} operands"),
        Arity::AtLeast(0) => "Any number of operands".to_string(),
        Arity::AtLeast(count) => format!("{count} or more operands"),
    };
    let head = format!("\n### `{}`\n\n{operands}. ", opcode.name());
    let is_taken = |ty: &ElementType| {
        let text = program_text(opcode, *ty);
        text.is_some_and(|text| parse_module(&text).and_then(VerifiedModule::new).is_ok())
    };
    let types: Vec<ElementType> = ElementType::ALL.iter().copied().filter(is_taken).collect();
    let shown = types.iter().find(|ty| **ty == ElementType::F32).or(types.first());
    let Some(program) = shown.and_then(|&ty| program_text(opcode, ty)) else {
        return head + "No released version of XLA reads it; refused by name.\n";
    };
    let refused = match recipe(opcode) {
        Some(Recipe::DeviceOnly(_)) => {
            " Needs a queue to the host or another device: verified, printed, refused when compiling."
        }
        Some(Recipe::Program { .. }) | None => "",
    };
    format!("{head}Element types: {}.{refused}\n\n```text\n{program}```\n", names(&types))
}

fn names(types: &[ElementType]) -> String {
    if types.len() == ElementType::ALL.len() {
        return "all".to_string();
    }
    let missing: Vec<&str> = ElementType::ALL.iter().filter(|ty| !types.contains(ty)).map(|ty| ty.name()).collect();
    if missing.len() < types.len() {
        return format!("all but {}", missing.join(", "));
    }
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ")
}
