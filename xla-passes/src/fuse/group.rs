//! A group of instructions that becomes one kernel.

use std::collections::{HashMap, HashSet};

use xla_hlo::InstrId;

use super::access::ElementAccess;

/// A kernel to be: a root and the producers that are evaluated inside.
pub struct FusionGroup {
    /// The root, which the kernel writes.
    pub root: InstrId,
    /// Everything evaluated inside, the root included, with how it is evaluated.
    pub members: HashMap<InstrId, Vec<ElementAccess>>,
    /// Instructions read from memory.
    pub reads: HashSet<InstrId>,
    /// Evaluations emitted: each member once for each of its accesses.
    pub size: usize,
    /// Machine instructions of those evaluations for an element of each, about.
    pub code: f64,
}
