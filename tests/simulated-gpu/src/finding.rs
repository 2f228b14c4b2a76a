//! Findings: errors of a kernel that are detected while it runs.

use std::fmt;

/// Class of errors, named after the tools of NVIDIA's compute-sanitizer (see [`Class::tool`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Access outside of all allocations.
    Bounds,
    /// Address that is not a multiple of the access size.
    Alignment,
    /// Read of uninitialised memory.
    Unwritten,
    /// Two unordered accesses, at least one of which is a write.
    Race,
    /// Invalid synchronization: threads wait for others that do not arrive, or an mbarrier or warp-level operation is
    /// misused.
    Synchronization,
    /// Kernel that does not terminate.
    Endless,
    /// `trap`.
    Trap,
    /// Launch with a configuration or arguments that the kernel does not allow.
    Launch,
}

impl Class {
    /// Returns the tool of compute-sanitizer that detects this class.
    pub fn tool(self) -> &'static str {
        match self {
            Class::Bounds | Class::Alignment => "memcheck",
            Class::Unwritten => "initcheck",
            Class::Race => "racecheck",
            Class::Synchronization => "synccheck",
            Class::Endless | Class::Trap | Class::Launch => "launch",
        }
    }
}

/// Error without the kernel, block, thread and line where it was detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Class of the error.
    pub class: Class,
    /// Message: a sentence without a capital letter at the beginning and without a full stop.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Problem {
        Problem { class, message: message.into() }
    }
}

/// Error of a launch, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Error.
    pub problem: Problem,
    /// Symbol of the kernel.
    pub kernel: String,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block.
    pub thread: [u32; 3],
    /// Line of the PTX text; 0 before the first instruction.
    pub line: u32,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        let Problem { class, message } = &self.problem;
        let (kernel, line) = (&self.kernel, self.line);
        write!(
            f,
            "{}: kernel {kernel}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz}), PTX line {line}: {message}",
            class.tool()
        )
    }
}
