//! Phases and iterations of a loop in one kernel, and the reasons why a loop does not fit.

use std::fmt;

use crate::fused::source::KernelSource;
use crate::fused::tuning::block_loop::MOST_ITEMS;

/// Part of an iteration: one computation, or a copy.
#[derive(Clone, Debug)]
pub struct BlockPhase<'m> {
    /// Work that the threads share.
    pub work: PhaseWork<'m>,
    /// Whether a barrier precedes the phase: it reads or writes data that other threads wrote or read since the last
    /// one.
    pub waits: bool,
}

/// Work of a phase.
#[derive(Clone, Debug)]
pub enum PhaseWork<'m> {
    /// Computes the results of a kernel.
    Compute {
        /// Kernel to compute.
        source: KernelSource<'m>,
        /// Indices of the pointers of the operands, then of the results.
        pointers: Vec<usize>,
    },
    /// Copies from one pointer to another.
    Copy {
        /// Index of the pointer to read.
        from: usize,
        /// Index of the pointer to write.
        to: usize,
        /// Number of bytes to copy, not 0.
        bytes: usize,
    },
}

/// Iterations of the loop in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRounds {
    /// Runs the body a fixed number of times, without a condition.
    Counted(u64),
    /// Computes the condition, then runs body and condition while the predicate is 1, the body at most `at_most` times.
    Tested {
        /// Index of the pointer to the predicate, a byte.
        predicate: usize,
        /// Maximum number of iterations.
        at_most: u64,
    },
}

impl BlockRounds {
    /// Returns the maximum number of iterations.
    pub(super) fn most(self) -> u64 {
        match self {
            BlockRounds::Counted(count) => count,
            BlockRounds::Tested { at_most, .. } => at_most,
        }
    }
}

/// Reason why a loop does not become one kernel: separate launches are faster, or only they can compute it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A phase that threads cannot compute independently; the name of its instruction.
    Operation(String),
    /// A phase with too many elements.
    Elements(u64),
    /// Too many phases, arrays or operations, which make large code.
    Size,
    /// One block is slower than launches on the whole device.
    Slow {
        /// Estimated cycles of an iteration.
        cycles: u64,
        /// Minimum cycles of its launches.
        launches: u64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Operation(name) => write!(f, "%{name} cannot be computed by threads that work independently"),
            Unfit::Elements(count) => write!(f, "{count} elements are computed at once, but at most {MOST_ITEMS} fit"),
            Unfit::Size => f.write_str("the loop has too many phases, arrays or operations"),
            Unfit::Slow { cycles, launches } => {
                write!(f, "an iteration takes one block about {cycles} cycles, and its launches {launches}")
            }
        }
    }
}
