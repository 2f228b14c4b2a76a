//! Recipes: for each opcode a small program that uses it with any element type.
//!
//! Placeholders of a recipe: `$t` is the element type, `$op` the opcode, `$part` the type of the real and imaginary
//! parts of a complex type, `$bits` the unsigned integer type of the same width (or the type itself, if there is none
//! or it is complex), `$add` the sum (or for `pred`), `$one` the number one, and `$before` the direction of comparison
//! that the type has (`LT`, or `EQ` for complex types). A recipe that violates a shape rule for an element type shows
//! that the operation does not support the type.

mod calls;
mod elements;
mod reductions;

use xla_hlo::{ElementKind, ElementType, Opcode};

/// Recipe for the test of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Lines of the entry, and the computations that it calls.
    Program {
        /// Computations before the entry.
        computations: &'static str,
        /// Lines of the entry.
        entry: &'static str,
        /// Comparison with the evaluator's results.
        check: Check,
    },
    /// Lines of the entry of a program that is parsed, verified and printed, but that a platform without queues to the
    /// host and links to other devices refuses by name when compiling.
    DeviceOnly(&'static str),
}

/// Comparison of a result with the evaluator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Equal up to a few roundings.
    Values,
    /// Equal shapes only; the values depend on the platform.
    Shapes,
}

const COMBINER: &str = "combiner { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = $add(x, y) }";

const fn program(computations: &'static str, entry: &'static str) -> Recipe {
    Recipe::Program { computations, entry, check: Check::Values }
}

const fn lines(entry: &'static str) -> Recipe {
    program("", entry)
}

const fn device_only(entry: &'static str) -> Recipe {
    Recipe::DeviceOnly(entry)
}

/// Returns the recipe of an opcode; `None` for [`Opcode::Shuffle`], which no released XLA parses.
pub fn recipe(opcode: Opcode) -> Option<Recipe> {
    recipes(opcode).next()
}

/// Returns all recipes of an opcode; there is at most one.
pub fn recipes(opcode: Opcode) -> impl Iterator<Item = Recipe> {
    let tables = [elements::RECIPES, reductions::RECIPES, calls::RECIPES];
    let rows = tables.into_iter().flatten().filter(move |(opcodes, _)| opcodes.contains(&opcode));
    rows.map(|(_, recipe)| *recipe)
}

/// Returns the text of a recipe's program for an element type.
pub fn text(opcode: Opcode, ty: ElementType, computations: &str, entry: &str) -> String {
    let same_width =
        |t: &&ElementType| t.kind() == ElementKind::Unsigned && t.bit_width() == ty.bit_width() && !ty.is_complex();
    let bits = ElementType::ALL.iter().find(same_width);
    let words = [
        ("$part", ty.real_part().name()),
        ("$bits", bits.unwrap_or(&ty).name()),
        ("$before", if ty.is_complex() { "EQ" } else { "LT" }),
        ("$add", if ty == ElementType::Pred { "or" } else { "add" }),
        ("$fft", if ty.is_complex() { "FFT" } else { "RFFT" }),
        ("$one", if ty.is_complex() { "(1, 0)" } else { "1" }),
        ("$op", opcode.name()),
        ("$t", ty.name()),
    ];
    let text = format!("HloModule coverage\n{computations}\nENTRY main {{\n {entry}\n}}\n");
    words.into_iter().fold(text, |text, (word, with)| text.replace(word, with))
}
