//! References to values.

use xla_hlo::{CompId, InstrId};

/// A leaf of an instruction's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueRef {
    /// Computation of the instruction.
    pub computation: CompId,
    /// Instruction that has the value.
    pub instruction: InstrId,
    /// Path into the instruction's shape; empty for arrays.
    pub path: Vec<usize>,
}
