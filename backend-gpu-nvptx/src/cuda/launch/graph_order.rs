//! Graph order: the order of the commands of a run of thunks, and the workspaces of its library calls.

use xla_hlo::entity::EntityId;
use xla_passes::buffers::Slice;
use xla_service::thunks::Thunk;

use crate::cuda::graph::hazards::{Access, Hazards};

/// First number of scratch memories; smaller numbers denote allocations.
const SCRATCH: usize = usize::MAX / 2;

/// Properties of a command that determine its position in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index of its thunk in the run.
    pub owner: usize,
    /// Size of its workspace in bytes.
    pub workspace: usize,
}

/// Order and workspaces of the commands of a run.
#[derive(Debug)]
pub(crate) struct GraphOrder {
    /// Commands of the run.
    pub steps: Vec<Step>,
    /// For each command, the indices of its predecessors.
    pub order: Vec<Vec<usize>>,
    /// For each command, the index of its workspace. Calls that follow each other share one.
    pub workspace: Vec<Option<usize>>,
    /// Size of each workspace in bytes.
    pub workspaces: Vec<usize>,
}

impl GraphOrder {
    /// Arranges commands, each of which belongs to one of `thunks`. Commands of the same thunk follow each other.
    pub fn new(thunks: &[Thunk], steps: Vec<Step>) -> GraphOrder {
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
        GraphOrder { steps, order, workspace, workspaces }
    }
}

/// Returns the accesses of a thunk, including those to its scratch memory.
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
