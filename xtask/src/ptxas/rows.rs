//! Resource usage of the kernels of each program: registers, spills, shared memory.

use std::collections::BTreeMap;
use std::fmt;

use sass_model::model::Measured;

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

#[cfg(test)]
mod tests {
    use sass_model::kernel::Kernel;

    use super::*;

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
