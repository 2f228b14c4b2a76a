//! Phases of a loop that is one kernel, its rounds, and the reasons why a loop is none.

use std::fmt;

use crate::fused::source::KernelSource;
use crate::fused::tuning::block_loop::MOST_ITEMS;

/// A part of a round: one computation, or a copy.
#[derive(Clone, Debug)]
pub struct BlockPhase<'m> {
    /// Work that its threads share.
    pub work: PhaseWork<'m>,
    /// Whether threads wait for each other before: it reads or writes what others wrote or read since they last did.
    pub waits: bool,
}

/// Work of a phase.
#[derive(Clone, Debug)]
pub enum PhaseWork<'m> {
    /// The results of a kernel; the numbers of its pointers.
    Compute {
        /// The kernel.
        source: KernelSource<'m>,
        /// Operands, then results.
        pointers: Vec<usize>,
    },
    /// A copy from one pointer to another.
    Copy {
        /// Number of the pointer that is read.
        from: usize,
        /// Number of the pointer that is written.
        to: usize,
        /// Bytes, not 0.
        bytes: usize,
    },
}

/// Rounds of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRounds {
    /// The body so many times; there is no condition.
    Counted(u64),
    /// The condition, then, while the predicate is 1, body and condition, the body at most so many times.
    Tested {
        /// Number of the pointer to the predicate, a byte.
        predicate: usize,
        /// Rounds.
        at_most: u64,
    },
}

impl BlockRounds {
    /// The most rounds.
    pub(super) fn most(self) -> u64 {
        match self {
            BlockRounds::Counted(count) => count,
            BlockRounds::Tested { at_most, .. } => at_most,
        }
    }
}

/// The reason why a loop is better launched step by step, or cannot be otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A phase that no thread computes by itself, by the name of its instruction.
    Operation(String),
    /// A phase of many elements.
    Elements(u64),
    /// Many phases, arrays, or operations, which make large code.
    Size,
    /// One block is slower than launches that have the whole device.
    Slow {
        /// Estimated cycles of a round.
        cycles: u64,
        /// Cycles that its launches take at least.
        launches: u64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Operation(name) => write!(f, "%{name} is nothing that threads compute by themselves"),
            Unfit::Elements(count) => write!(f, "{count} elements are computed at once, {MOST_ITEMS} at most fit"),
            Unfit::Size => f.write_str("it has many phases, arrays or operations"),
            Unfit::Slow { cycles, launches } => {
                write!(f, "a round takes one block about {cycles} cycles, and its launches {launches}")
            }
        }
    }
}
