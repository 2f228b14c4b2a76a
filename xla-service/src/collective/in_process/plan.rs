//! Division of a collective into tasks that different threads may execute.

use std::ops::Range;

use crate::collective::{CollectiveSpec, Operation, Part};

/// Approximate number of bytes that a task reads and writes. A task takes about 100 microseconds, much longer than
/// claiming it.
const TASK_BYTES: usize = 1 << 20;

/// Largest number of bytes, read and written in total, that the last member to arrive processes alone. Other threads
/// wake up in the time that this takes.
const SMALL_BYTES: usize = 256 << 10;

/// Work of a collective on one of its arrays: a range of indices that can be processed in any order.
#[derive(Clone, Copy, Debug)]
struct Space {
    /// Number of the first task.
    first_task: usize,
    /// Number of indices.
    length: usize,
    /// Number of indices of a task, the last one excepted.
    step: usize,
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
    /// Work on each array.
    spaces: Vec<Space>,
    /// Number of tasks.
    pub tasks: usize,
    /// Whether one thread should execute all tasks.
    pub is_small: bool,
}

impl Plan {
    pub fn new(spec: &CollectiveSpec) -> Plan {
        let mut tasks = 0;
        let arrays = 0..spec.result_bytes().count();
        let spaces = arrays.map(|array| {
            let space = Space { first_task: tasks, ..space(spec, array) };
            tasks += space.tasks();
            space
        });
        let spaces: Vec<Space> = spaces.collect();
        let bytes = spaces.iter().map(|space| space.length.saturating_mul(space.index_bytes));
        let is_small = bytes.fold(0, usize::saturating_add) <= SMALL_BYTES;
        Plan { spaces, tasks, is_small }
    }

    /// Returns the array and the range of indices of a task.
    pub fn task(&self, task: usize) -> Option<(usize, Range<usize>)> {
        // If several arrays have equal first tasks, only the last of them has tasks.
        let array = self.spaces.partition_point(|space| space.first_task <= task).checked_sub(1)?;
        let space = &self.spaces[array];
        let first = (task - space.first_task) * space.step;
        (first < space.length).then(|| (array, first..space.length.min(first + space.step)))
    }
}

/// Returns the indices of result `array`, as if it were the first. The functions of `tasks.rs` document their meaning.
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
        Operation::PermuteSlices(_) => return receivers(members, part),
        Operation::Barrier => (0, 0),
    };
    let index_bytes = width * accesses;
    Space { first_task: 0, length, step: (TASK_BYTES / index_bytes.max(1)).max(1), index_bytes }
}

fn receivers(members: usize, part: Part) -> Space {
    Space { first_task: 0, length: members, step: 1, index_bytes: part.bytes().saturating_mul(3) }
}

#[cfg(test)]
mod tests {
    use xla_hlo::ElementType;

    use super::*;

    #[test]
    fn tasks_of_many_arrays_cover_every_index_once() {
        // Two fifths of the arrays are empty, among them the first and the last two. Two tasks cover the largest ones.
        let counts: Vec<usize> = (0..500).map(|i| [0, 7, 100_000, 1, 0][i % 5] * usize::from(i < 498)).collect();
        let parts = counts.iter().map(|&count| Part::whole(ElementType::F32, count)).collect();
        let plan = Plan::new(&CollectiveSpec::new(Operation::Permute(vec![]), parts, 2).unwrap());
        let mut covered = vec![0; counts.len()];
        for task in 0..plan.tasks {
            let (array, range) = plan.task(task).unwrap();
            assert!(range.start == covered[array] && !range.is_empty(), "task {task} is {range:?} of array {array}");
            covered[array] = range.end;
        }
        assert_eq!(covered, counts.iter().map(|count| 2 * count).collect::<Vec<usize>>());
        assert_eq!(plan.tasks, 399);
        assert!((399..410).all(|task| plan.task(task).is_none()));
    }
}
