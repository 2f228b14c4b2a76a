//! Programs of one large fusion each, 1,000 to 4,000 instructions of many values at a time: `large/NAME`.
//!
//! According to its issue tracker, XLA:GPU limits such kernels to 32 registers and spills the rest.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::root;

/// Elements of each array.
const ELEMENTS: usize = 1 << 20;
/// Operations that machines do in an instruction.
const SIMPLE: &[(&str, usize)] = &[("add", 2), ("multiply", 2), ("subtract", 2), ("maximum", 2), ("minimum", 2)];
const INTEGER: &[(&str, usize)] = &[("add", 2), ("multiply", 2), ("xor", 2), ("and", 2), ("minimum", 2)];
/// Some that take dozens.
const FUNCTIONS: &[(&str, usize)] = &[
    ("add", 2),
    ("multiply", 2),
    ("subtract", 2),
    ("sine", 1),
    ("exponential", 1),
    ("tanh", 1),
    ("log", 1),
    ("divide", 2),
    ("sqrt", 1),
];

/// A program to write.
struct Large {
    name: &'static str,
    ty: &'static str,
    operations: &'static [(&'static str, usize)],
    /// Values that later ones are made of.
    alive: usize,
    instructions: usize,
}

const PROGRAMS: &[Large] = &[
    Large { name: "chain_f32", ty: "f32", operations: SIMPLE, alive: 6, instructions: 3900 },
    Large { name: "chain_bf16", ty: "bf16", operations: SIMPLE, alive: 6, instructions: 2000 },
    Large { name: "wide_f32_50", ty: "f32", operations: SIMPLE, alive: 50, instructions: 1500 },
    Large { name: "wide_f32_100", ty: "f32", operations: SIMPLE, alive: 100, instructions: 1200 },
    Large { name: "wide_f32_200", ty: "f32", operations: SIMPLE, alive: 200, instructions: 2000 },
    Large { name: "wide_f64_60", ty: "f64", operations: SIMPLE, alive: 60, instructions: 1200 },
    Large { name: "wide_s32_150", ty: "s32", operations: INTEGER, alive: 150, instructions: 1500 },
    Large { name: "wide_bf16_100", ty: "bf16", operations: SIMPLE, alive: 100, instructions: 1000 },
    Large { name: "functions_f32", ty: "f32", operations: FUNCTIONS, alive: 6, instructions: 1000 },
];

/// Writes the programs; their names and files.
pub fn programs() -> Result<Vec<(String, PathBuf)>> {
    let folder = root().join("target/ptxas/large");
    fs::create_dir_all(&folder)?;
    let write = |large: &Large| {
        let file = folder.join(format!("{}.hlo", large.name));
        fs::write(&file, large.text()).with_context(|| file.display().to_string())?;
        Ok((format!("large/{}", large.name), file))
    };
    PROGRAMS.iter().map(write).collect()
}

impl Large {
    /// HLO text of the program: each instruction combines two live values and replaces one of them; the end adds up all
    /// live values.
    fn text(&self) -> String {
        let shape = format!("{}[{ELEMENTS}]", self.ty);
        let mut text = format!("HloModule {}\n\nENTRY main {{\n", self.name);
        let mut line = |name: &str, value: &str| _ = writeln!(text, "  {name} = {shape} {value}");
        line("x", "parameter(0)");
        line("y", "parameter(1)");
        let mut random = Random(self.instructions as u64);
        let mut alive = vec!["x".to_owned(), "y".to_owned()];
        for number in 0..self.instructions - self.alive {
            let (operation, operands) = self.operations[random.below(self.operations.len())];
            let mut operand = || alive[random.below(alive.len())].as_str();
            let operands: Vec<&str> = (0..operands).map(|_| operand()).collect();
            let name = format!("v{number}");
            line(&name, &format!("{operation}({})", operands.join(", ")));
            match alive.len() < self.alive {
                true => alive.push(name),
                false => alive[number % self.alive] = name,
            }
        }
        let mut sum = alive[0].clone();
        for (number, value) in alive.iter().enumerate().skip(1) {
            let name = if number + 1 == alive.len() { "ROOT r".to_owned() } else { format!("s{number}") };
            line(&name, &format!("add({sum}, {value})"));
            sum = name;
        }
        text + "}\n"
    }
}

/// Numbers of a linear congruential generator, the same each time (D. Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_as_many_instructions_as_they_say() {
        for large in PROGRAMS {
            let text = large.text();
            let lines = text.lines().filter(|line| line.contains(" = ")).count();
            assert_eq!(lines, large.instructions + 1, "{}", large.name);
            assert_eq!(text, large.text());
        }
    }
}
