//! A group of instructions that becomes one kernel.

use std::collections::{HashMap, HashSet};

use xla_hlo::InstrId;

use super::access::ElementAccess;

/// Registers and arrays of the values that a kernel reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadDemand {
    /// Registers of values that are still to be computed.
    pub registers: usize,
    /// Arrays in memory.
    pub arrays: usize,
}

impl ReadDemand {
    /// The sum.
    pub fn plus(self, other: ReadDemand) -> ReadDemand {
        ReadDemand { registers: self.registers + other.registers, arrays: self.arrays + other.arrays }
    }

    /// The rest without `other`, a part of it.
    pub fn minus(self, other: ReadDemand) -> ReadDemand {
        ReadDemand { registers: self.registers - other.registers, arrays: self.arrays - other.arrays }
    }
}

/// A kernel to be: a root and the producers that are evaluated inside.
pub struct FusionGroup {
    /// The root, which the kernel writes.
    pub root: InstrId,
    /// Everything evaluated inside, the root included, with how it is evaluated.
    pub members: HashMap<InstrId, Vec<ElementAccess>>,
    /// Instructions read from memory.
    pub reads: HashSet<InstrId>,
    /// Sums over `reads` that limits are checked against.
    pub demand: ReadDemand,
    /// Evaluations emitted: each member once for each of its accesses.
    pub size: usize,
    /// Machine instructions of those evaluations for an element of each, about.
    pub code: f64,
}
