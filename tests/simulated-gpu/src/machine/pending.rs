//! Pending asynchronous copies of a thread.

use std::collections::VecDeque;

use crate::code::MemoryOperand;

/// Pending copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Committed groups, the oldest first.
    pub groups: VecDeque<Vec<Copy>>,
    /// Copies that are not committed yet.
    pub open: Vec<Copy>,
}

/// Pending copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// Operands with their addresses.
    pub to: (MemoryOperand, u64),
    pub from: (MemoryOperand, u64),
    pub bytes: usize,
    /// Bytes to read from the source; the rest is zero.
    pub read: usize,
}

impl Copies {
    /// Drops all copies.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.open.clear();
    }
}
