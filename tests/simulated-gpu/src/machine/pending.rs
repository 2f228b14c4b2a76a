//! Asynchronous copies of a thread that are under way.

use std::collections::VecDeque;

use crate::code::MemoryOperand;

/// Copies that are under way.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Groups that have ended, the first one first.
    pub groups: VecDeque<Vec<Copy>>,
    /// Copies of the group that has not.
    pub open: Vec<Copy>,
}

/// A copy that has begun.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// Places, with their addresses.
    pub to: (MemoryOperand, u64),
    pub from: (MemoryOperand, u64),
    pub bytes: usize,
    /// Bytes of the source; zeros follow.
    pub read: usize,
}

impl Copies {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.open.clear();
    }
}
