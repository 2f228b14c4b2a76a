//! Report of `ptxas -v` for each kernel: registers, stack, spills, shared memory.

use std::fmt;

/// Marker of lines that report slow code, such as serialised wgmma instructions.
const LOSS: &str = "Potential Performance Loss";

/// Resources of kernels, in the order in which `ptxas` reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Resources of each kernel.
    pub kernels: Vec<KernelReport>,
    /// Warnings and reported performance losses, one line each.
    pub warnings: Vec<String>,
}

/// Resources of one kernel. Bytes are per thread, except those of shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelReport {
    /// Symbol of the kernel.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Barriers per block.
    pub barriers: u32,
    /// Stack frame: addressed variables and spills.
    pub stack_bytes: u32,
    /// Bytes of spill stores.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads.
    pub spill_load_bytes: u32,
    /// Static shared memory per block.
    pub shared_bytes: u32,
}

impl Report {
    /// Parses the text that `ptxas -v` writes to its error stream. Unknown lines are ignored: they differ between
    /// versions.
    pub fn parse(text: &str) -> Report {
        let mut report = Report::default();
        for line in text.lines() {
            report.line(line.trim());
        }
        report
    }

    fn line(&mut self, line: &str) {
        if line.starts_with("ptxas warning") || line.contains(LOSS) {
            self.warnings.push(line.to_string());
            return;
        }
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_string();
            self.kernels.push(KernelReport { name, ..KernelReport::default() });
            return;
        }
        let Some(kernel) = self.kernels.last_mut() else { return };
        for part in line.trim_start_matches("ptxas info").trim_start_matches([' ', ':']).split(", ") {
            kernel.part(part.trim());
        }
    }

    /// Formats the report like `ptxas`, so that [`Report::parse`] can read it.
    pub fn as_ptxas_writes(&self) -> String {
        let kernels = self.kernels.iter().map(|k| {
            format!(
                "Compiling entry function '{}'\n{} bytes stack frame, {} bytes spill stores, {} bytes spill loads\n\
                 Used {} registers, used {} barriers, {} bytes smem\n",
                k.name, k.stack_bytes, k.spill_store_bytes, k.spill_load_bytes, k.registers, k.barriers, k.shared_bytes
            )
        });
        kernels.chain(self.warnings.iter().map(|warning| format!("{warning}\n"))).collect()
    }
}

impl KernelReport {
    /// Parses one fact of a line, such as `Used 8 registers` or `0 bytes spill stores`.
    fn part(&mut self, part: &str) {
        let words: Vec<&str> =
            part.trim_start_matches(['U', 'u']).trim_start_matches("sed ").split_whitespace().collect();
        let Some((number, what)) = words.split_first() else { return };
        let Ok(number) = number.parse::<u32>() else { return };
        match what {
            ["registers"] => self.registers = number,
            ["barriers"] => self.barriers = number,
            ["bytes", "stack", "frame"] => self.stack_bytes = number,
            ["bytes", "spill", "stores"] => self.spill_store_bytes = number,
            ["bytes", "spill", "loads"] => self.spill_load_bytes = number,
            ["bytes", "smem"] => self.shared_bytes = number,
            _ => {}
        }
    }
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} registers, {} bytes of stack, {} spilled and {} read back, {} of shared memory",
            self.name,
            self.registers,
            self.stack_bytes,
            self.spill_store_bytes,
            self.spill_load_bytes,
            self.shared_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_each_kernel_are_read() {
        // Output of version 12.9, with two lines of other versions and two unknown ones.
        let text = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    400 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 6 registers, used 1 barriers, 400 bytes cumulative stack size, 1000 bytes smem
ptxas info    : Compile time = 3.034 ms
ptxas warning : Value of threads per SM for entry b is out of range
ptxas info    : (C7509) Potential Performance Loss: something new
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, 344 bytes smem, 380 bytes cmem[0]
";
        let report = Report::parse(text);
        let told: Vec<_> = report.kernels.iter().map(KernelReport::to_string).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        b: 6 registers, 400 bytes of stack, 12 spilled and 16 read back, 1000 of shared memory
        a: 255 registers, 0 bytes of stack, 0 spilled and 0 read back, 344 of shared memory
        ");
        assert_eq!(report.kernels.iter().map(|k| k.barriers).collect::<Vec<_>>(), [1, 0]);
        let warnings = [
            "ptxas warning : Value of threads per SM for entry b is out of range",
            "ptxas info    : (C7509) Potential Performance Loss: something new",
        ];
        assert_eq!(report.warnings, warnings);
        assert_eq!(Report::parse(&report.as_ptxas_writes()), report);
        assert_eq!(Report::parse("nothing, 3 registers"), Report::default());
    }
}
