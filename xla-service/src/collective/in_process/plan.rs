//! Division of a collective into tasks that different threads may execute.

use crate::collective::{CollectiveSpec, Operation, Part};

/// Approximate number of bytes that a task reads and writes. A task takes about 100 microseconds, much longer than
/// claiming it.
const TASK_BYTES: usize = 1 << 20;

/// Largest number of bytes, read and written in total, that the last member to arrive processes alone. Other threads
/// wake up in the time that this takes.
pub(super) const SMALL_BYTES: usize = 256 << 10;

/// Work of a collective on one of its arrays: a range of indices that can be processed in any order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// Index of the array.
    pub array: usize,
    /// Number of indices.
    pub length: usize,
    /// Number of indices of a task, the last one excepted.
    pub step: usize,
    /// Approximate number of bytes that are read and written for an index.
    index_bytes: usize,
}

impl Space {
    fn tasks(&self) -> usize {
        self.length.div_ceil(self.step)
    }
}

/// Tasks of a collective.
#[derive(Debug)]
pub(super) struct Plan {
    spaces: Vec<Space>,
    /// Number of tasks.
    pub tasks: usize,
    /// Whether one thread should execute all tasks.
    pub is_small: bool,
}

impl Plan {
    pub fn new(spec: &CollectiveSpec) -> Plan {
        let arrays = 0..spec.result_bytes().count();
        let spaces: Vec<Space> = arrays.map(|array| space(spec, array)).collect();
        let bytes = spaces.iter().map(|space| space.length.saturating_mul(space.index_bytes));
        let is_small = bytes.fold(0, usize::saturating_add) <= SMALL_BYTES;
        Plan { tasks: spaces.iter().map(Space::tasks).sum(), spaces, is_small }
    }

    /// Returns the array and the range of indices of a task.
    pub fn task(&self, mut task: usize) -> Option<(usize, std::ops::Range<usize>)> {
        for space in &self.spaces {
            match task.checked_sub(space.tasks()) {
                Some(rest) => task = rest,
                None => {
                    let first = task * space.step;
                    return Some((space.array, first..space.length.min(first + space.step)));
                }
            }
        }
        None
    }
}

/// Returns the indices of result `array`. Their meaning is documented at the functions of `tasks.rs`.
fn space(spec: &CollectiveSpec, array: usize) -> Space {
    let members = spec.members();
    let part = spec.arrays()[spec.initial_values().start + array];
    let (elements, width) = (part.outer * part.inner, part.element_type.byte_width());
    let (length, accesses) = match spec.operation() {
        Operation::AllReduce(_) => (elements, 2 * members),
        Operation::Broadcast => (elements, members + 1),
        Operation::ReduceScatter(_) | Operation::AllGather => (elements * members, members + 1),
        // Result `array` of a tuple form receives the parts of one sender.
        Operation::AllToAllTuple | Operation::Permute(_) => (elements * members, 2),
        Operation::AllToAll => (elements * members * members, 2),
        Operation::RaggedAllToAll => (elements * members, 3),
        // A slice is written by one thread, since slices may overlap.
        Operation::PermuteSlices(_) => return receivers(array, members, part),
        Operation::Barrier => (0, 0),
    };
    let index_bytes = width * accesses;
    Space { array, length, step: (TASK_BYTES / index_bytes.max(1)).max(1), index_bytes }
}

fn receivers(array: usize, members: usize, part: Part) -> Space {
    Space { array, length: members, step: 1, index_bytes: part.bytes().saturating_mul(3) }
}
