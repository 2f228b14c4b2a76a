//! A group of instructions that becomes one kernel.

use std::collections::{HashMap, HashSet};

use xla_hlo::InstrId;

use super::access::ElementAccess;

/// Demand of a kernel for values that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadDemand {
    /// Registers of values that are not computed yet.
    pub registers: usize,
    /// Number of arrays in memory.
    pub arrays: usize,
}

impl ReadDemand {
    /// Returns the sum of two demands.
    pub fn plus(self, other: ReadDemand) -> ReadDemand {
        ReadDemand { registers: self.registers + other.registers, arrays: self.arrays + other.arrays }
    }

    /// Returns the demand without `other`, which must be a part of it.
    pub fn minus(self, other: ReadDemand) -> ReadDemand {
        ReadDemand { registers: self.registers - other.registers, arrays: self.arrays - other.arrays }
    }
}

/// A planned kernel: a root and the producers that are evaluated inside.
pub struct FusionGroup {
    /// The root, whose value the kernel writes.
    pub root: InstrId,
    /// Instructions that are evaluated inside, including the root, with their accesses.
    pub members: HashMap<InstrId, Vec<ElementAccess>>,
    /// Instructions whose values are read from memory.
    pub reads: HashSet<InstrId>,
    /// Sums over `reads` that are checked against limits.
    pub demand: ReadDemand,
    /// Number of emitted evaluations: each member once per access.
    pub size: usize,
    /// Estimated machine instructions per element, summed over these evaluations.
    pub code: f64,
}
