//! References to values.

use xla_hlo::{CompId, InstrId};

/// A leaf of an instruction's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueRef {
    /// The computation.
    pub computation: CompId,
    /// The instruction in it.
    pub instruction: InstrId,
    /// Path into the instruction's shape; empty for arrays.
    pub path: Vec<usize>,
}
