//! Recipes: for each opcode a tiny program that uses it on any element type.
//!
//! In a recipe `$t` stands for the element type, `$op` for the opcode, `$part` for the type of a complex number's
//! parts, `$bits` for the unsigned integers of the same width (or the type itself, where there are none or it is
//! complex), `$add` for a sum (of truth values: or), `$one` for the number one, and `$before` for the comparison that
//! the type has (`LT`, of complex numbers `EQ`). A recipe that breaks a shape rule says that the operation does not
//! have the type.

mod calls;
mod elements;
mod reductions;

use xla_hlo::{ElementKind, ElementType, Opcode};

/// Recipe for trying an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Lines of the entry, and the computations that it calls.
    Program {
        /// Computations in front of the entry.
        computations: &'static str,
        /// The lines of the entry.
        entry: &'static str,
        /// Comparison with the evaluator's results.
        check: Check,
    },
    /// Lines of the entry of a program that is read, verified and printed, and that a platform without queues to the
    /// host and links to other devices refuses by name when compiling.
    DeviceOnly(&'static str),
}

/// Comparison of a result with the evaluator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Within a few roundings.
    Values,
    /// Only the shapes: the values are the platform's own.
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

/// Recipe of an opcode; `None` for one that no released XLA reads, and so nobody can write: [`Opcode::Shuffle`].
pub fn recipe(opcode: Opcode) -> Option<Recipe> {
    let tables = [elements::RECIPES, reductions::RECIPES, calls::RECIPES];
    let row = tables.into_iter().flatten().find(|(opcodes, _)| opcodes.contains(&opcode));
    row.map(|(_, recipe)| *recipe)
}

/// The program of a recipe for an element type.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_opcode_has_one_recipe() {
        let tables = [elements::RECIPES, reductions::RECIPES, calls::RECIPES];
        for &opcode in Opcode::ALL {
            let rows = tables.into_iter().flatten().filter(|(opcodes, _)| opcodes.contains(&opcode)).count();
            assert_eq!(rows, usize::from(opcode != Opcode::Shuffle), "{opcode}");
        }
    }
}
