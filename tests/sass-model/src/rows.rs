//! Resource usage of the kernels of each program: registers, spills, shared memory; their estimates.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::model::{Estimate, Measured, Stretch};
use crate::table::TableRow;

/// The programs that are estimated, by the beginning of their names.
pub const PROGRAMS: &str = "bench/";

/// A program with its kernels, or why there are none.
pub struct Row {
    pub name: String,
    pub outcome: Result<Vec<Measured>, String>,
}

impl Row {
    pub const HEAD: &'static str = "kernels  most registers  spilled bytes  most shared bytes  program";

    pub fn is_notable(&self) -> bool {
        self.outcome.as_ref().map_or(true, |kernels| kernels.iter().any(Measured::spills))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = match &self.outcome {
            Ok(kernels) => kernels,
            Err(problem) => return write!(f, "{}: {problem}", self.name),
        };
        let most = |what: fn(&Measured) -> u64| kernels.iter().map(what).max().unwrap_or(0);
        let spilled: u64 = kernels.iter().map(|of| of.kernel.spill_bytes).sum();
        let (registers, shared) = (most(|of| of.kernel.registers), most(|of| of.kernel.shared_bytes));
        write!(f, "{:>7} {registers:>15} {spilled:>14} {shared:>18}  {}", kernels.len(), self.name)?;
        let spilling: Vec<&str> = kernels.iter().filter(|of| of.spills()).map(|of| of.kernel.name.as_str()).collect();
        if spilling.is_empty() { Ok(()) } else { write!(f, " ({})", spilling.join(", ")) }
    }
}

/// All rows in a line.
#[derive(Default)]
pub struct Summary {
    programs: usize,
    kernels: usize,
    pub failures: usize,
    pub spilling: usize,
    /// Number of kernels by registers, rounded up to a multiple of 32.
    registers: BTreeMap<u64, usize>,
}

impl Summary {
    pub fn of(rows: &[Row]) -> Summary {
        let mut summary = Summary { programs: rows.len(), ..Summary::default() };
        for row in rows {
            let Ok(kernels) = &row.outcome else {
                summary.failures += 1;
                continue;
            };
            summary.kernels += kernels.len();
            for kernel in kernels {
                summary.spilling += usize::from(kernel.spills());
                *summary.registers.entry(kernel.kernel.registers.next_multiple_of(32)).or_default() += 1;
            }
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { programs, kernels, failures, spilling, registers } = self;
        write!(f, "{programs} programs, {failures} of them fail; {kernels} kernels, {spilling} of them spill")?;
        let classes: Vec<String> = registers.iter().map(|(most, count)| format!("{count} up to {most}")).collect();
        if classes.is_empty() { Ok(()) } else { write!(f, "; registers: {}", classes.join(", ")) }
    }
}

/// Kernels with their estimates, and the programs that they are of.
fn estimated(rows: &[Row]) -> impl Iterator<Item = (&str, &Measured, &Estimate)> {
    rows.iter().filter_map(|row| Some((row.name.strip_prefix(PROGRAMS)?, row.outcome.as_ref().ok()?))).flat_map(
        |(program, kernels)| {
            kernels.iter().filter_map(move |measured| Some((program, measured, measured.estimate.as_ref()?)))
        },
    )
}

/// Rows of the table of estimates.
pub fn table_rows(rows: &[Row]) -> Vec<TableRow> {
    estimated(rows).map(|(program, measured, estimate)| TableRow::new(program, measured, estimate)).collect()
}

/// All innermost loops of all kernels, as text.
pub fn loops(rows: &[Row]) -> String {
    let mut text = String::new();
    for (program, Measured { kernel, .. }, estimate) in estimated(rows) {
        let launch = kernel.launch;
        let per_element = |count: u64| count as f64 * launch.all_threads() / estimate.elements;
        let [_, memory, issue, special, tensor] = estimate.seconds.map(|seconds| seconds * 1e6);
        let _ = writeln!(
            text,
            "{program}/{}: {}\n  {} blocks of {} threads, {:.0} elements, {} registers, {} jumps by data; {:.2} instructions by \
             elements{}\n  \
             us: memory {memory:.2}, issue {issue:.2}, special {special:.2}, tensor {tensor:.2}",
            kernel.name,
            kernel.strategy,
            launch.blocks,
            launch.threads,
            estimate.elements,
            kernel.registers,
            estimate.guesses,
            estimate.per_element,
            if estimate.by_data { ", at least: data decides how often a loop is done" } else { "" },
        );
        let stretches = estimate.loops.iter().map(|l| ("loop", l)).chain([("all", &estimate.whole)]);
        for (what, Stretch { address, turns, instructions, tensor, special, local, .. }) in stretches.clone() {
            let _ = writeln!(
                text,
                "  {what} at {address:#06x}: {turns} turns, {instructions} instructions, {:.2} by elements; {tensor} \
                 tensor, {special} special, {local} local",
                per_element(*instructions)
            );
        }
        for (what, Stretch { address, loads_in_flight, loads, stores, .. }) in stretches {
            let _ = writeln!(
                text,
                "  {what} at {address:#06x}: {loads_in_flight} loads in flight of {loads:?} bytes, stores of {stores:?}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    fn kernel(name: &str, registers: u64, spill_bytes: u64) -> Measured {
        let kernel = Kernel { name: name.to_owned(), registers, spill_bytes, shared_bytes: 128, ..Kernel::default() };
        Measured { kernel, ..Measured::default() }
    }

    #[test]
    fn rows_and_their_sum() {
        let good = vec![kernel("k0_add", 16, 0), kernel("k1_dot", 255, 24)];
        let rows = [
            Row { name: "bench/a".to_owned(), outcome: Ok(good) },
            Row { name: "bench/b".to_owned(), outcome: Err("exit status: 1: error: no".to_owned()) },
            Row { name: "bench/c".to_owned(), outcome: Ok(Vec::new()) },
        ];
        assert_eq!(rows[0].to_string(), "      2             255             24                128  bench/a (k1_dot)");
        assert_eq!(rows[0].to_string().find("bench"), Row::HEAD.find("program"));
        assert_eq!(rows[1].to_string(), "bench/b: exit status: 1: error: no");
        assert_eq!(rows.iter().map(Row::is_notable).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(
            Summary::of(&rows).to_string(),
            "3 programs, 1 of them fail; 2 kernels, 1 of them spill; registers: 1 up to 32, 1 up to 256"
        );
    }
}
