//! Findings: errors of a kernel that are detected while it runs.

use std::fmt;

/// A class of mistakes; the names are those of NVIDIA's compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An access outside of all allocations.
    Bounds,
    /// An address that is not a multiple of the access size.
    Alignment,
    /// Memory that is read and was never written.
    Unwritten,
    /// Two accesses that nothing orders, one of which writes.
    Race,
    /// Threads that wait for others which do not come.
    Synchronization,
    /// A kernel that does not end.
    Endless,
    /// `trap`.
    Trap,
    /// A launch that a kernel cannot be launched with.
    Launch,
}

impl Class {
    /// The tool of compute-sanitizer that looks for it.
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

/// An error without its place, from where it is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The class.
    pub class: Class,
    /// A sentence, without a capital at the beginning and a full stop at the end.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Problem {
        Problem { class, message: message.into() }
    }
}

/// An error of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub problem: Problem,
    /// The kernel's symbol.
    pub kernel: String,
    /// The block.
    pub block: [u32; 3],
    /// The thread in its block.
    pub thread: [u32; 3],
    /// The line of the PTX text; 0 before the first instruction.
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
