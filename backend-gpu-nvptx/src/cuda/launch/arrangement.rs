//! Arrangement of a run of thunks as a graph: the order of its commands, and the workspaces of its library calls.

use xla_hlo::entity::EntityId;
use xla_passes::buffers::Slice;
use xla_service::thunks::Thunk;

use crate::cuda::graph::hazards::{Access, Hazards};

/// Scratch memories have numbers from here on; those below are allocations.
const SCRATCH: usize = usize::MAX / 2;

/// A command of a run, as far as its place in the graph depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The number of its thunk in the run.
    pub owner: usize,
    /// Bytes of its workspace.
    pub workspace: usize,
}

/// The places of a run's commands in its graph.
#[derive(Debug)]
pub(crate) struct Arrangement {
    /// The commands.
    pub steps: Vec<Step>,
    /// For each command, the numbers of the earlier ones that it must follow.
    pub order: Vec<Vec<usize>>,
    /// For each command, the number of its workspace. Calls that follow each other share one.
    pub workspace: Vec<Option<usize>>,
    /// Bytes of each workspace.
    pub workspaces: Vec<usize>,
}

impl Arrangement {
    /// The arrangement of those commands, each of one of `thunks`. Those of one thunk follow each other.
    pub fn new(thunks: &[Thunk], steps: Vec<Step>) -> Arrangement {
        let mut hazards = Hazards::default();
        let order = steps.iter().map(|step| hazards.add(&accesses(&thunks[step.owner], step.owner))).collect();
        let mut last_users: Vec<usize> = Vec::new();
        let mut workspaces: Vec<usize> = Vec::new();
        let mut workspace = vec![None; steps.len()];
        for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.workspace > 0) {
            let free = last_users.iter().position(|&last| hazards.follows(number, last));
            let chosen = free.unwrap_or(last_users.len());
            if free.is_none() {
                last_users.push(number);
                workspaces.push(0);
            }
            last_users[chosen] = number;
            workspaces[chosen] = workspaces[chosen].max(step.workspace);
            workspace[number] = Some(chosen);
        }
        Arrangement { steps, order, workspace, workspaces }
    }
}

/// The accesses of a thunk, with those of its scratch memory.
fn accesses(thunk: &Thunk, number: usize) -> Vec<Access> {
    let of = |slice: Slice, writes| Access {
        memory: slice.allocation.index(),
        bytes: slice.offset..slice.offset + slice.size,
        writes,
    };
    let reads = thunk.operands.iter().map(|array| of(array.slice, false));
    let writes = thunk.results.iter().map(|array| of(array.slice, true));
    let own = Access { memory: SCRATCH + number, bytes: 0..1, writes: true };
    reads.chain(writes).chain([own]).collect()
}
