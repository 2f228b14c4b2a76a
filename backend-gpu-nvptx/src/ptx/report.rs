//! Report of `ptxas -v` for each kernel: registers, stack, spills, shared memory.

use std::fmt;

/// Part of a line that tells of something slow, products of warp groups one after the other for instance.
const LOSS: &str = "Potential Performance Loss";

/// Resources of kernels, in the order in which `ptxas` reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// One for each kernel.
    pub kernels: Vec<KernelReport>,
    /// Warnings, a line each, and what is told of losses.
    pub warnings: Vec<String>,
}

/// Resources of one kernel. Bytes are those of a thread, but for shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelReport {
    /// Its symbol.
    pub name: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Stack: what is addressed, and what is spilled.
    pub stack_bytes: u32,
    /// Bytes written because registers did not suffice.
    pub spill_store_bytes: u32,
    /// Bytes read because registers did not suffice.
    pub spill_load_bytes: u32,
    /// Static shared memory of a block.
    pub shared_bytes: u32,
}

impl Report {
    /// Reads the text that `ptxas -v` writes to its error stream. Lines that are not understood are passed over: they
    /// differ from version to version.
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

    /// The same in the format of `ptxas`, from which [`Report::parse`] makes it again.
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
    /// One of the facts of a line, such as `Used 8 registers` or `0 bytes spill stores`.
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
        // As version 12.9 writes it, two lines of other versions, and two that nobody knows.
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
