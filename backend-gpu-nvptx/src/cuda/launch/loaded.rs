//! Program code on one device, with the graphs that are kept of its thunk sequences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::entity::EntityId;
use xla_passes::buffers::Slice;
use xla_service::thunks::{Thunk, ThunkId, ThunkSequence};

use crate::autotune::Candidate;
use crate::cuda::graph::GraphSlot;
use crate::cuda::graph::hazards::{Access, Hazards};
use crate::cuda::library::Libraries;
use crate::cuda::module::CudaModule;
use crate::program::library_call::LibraryCall;

/// Scratch memories have numbers from here on; those below are allocations.
const SCRATCH: usize = usize::MAX / 2;

/// The code on one device.
#[derive(Debug)]
pub(crate) struct LoadedProgram {
    /// By the first thunk of the sequence, or a loop's own. They go before the code that they launch.
    graphs: Mutex<HashMap<ThunkId, Arc<KeptGraph>>>,
    pub(crate) module: CudaModule,
    pub(crate) libraries: Arc<Libraries>,
    /// The chosen candidates of this program's library calls.
    pub(crate) candidates: Mutex<HashMap<LibraryCall, Candidate>>,
}

impl LoadedProgram {
    /// Code and libraries of one device; no graph is kept yet.
    pub fn new(module: CudaModule, libraries: Arc<Libraries>) -> LoadedProgram {
        LoadedProgram { module, libraries, candidates: Mutex::default(), graphs: Mutex::default() }
    }

    /// The graph of the sequence that begins with that thunk, or of that loop.
    pub fn kept(&self, thunk: ThunkId) -> Arc<KeptGraph> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner).entry(thunk).or_default().clone()
    }
}

/// A sequence that is kept.
#[derive(Debug, Default)]
pub(crate) struct KeptGraph {
    pub slot: GraphSlot,
    /// The thunk of each command, and the earlier commands that it must follow; computed when the sequence
    /// first runs.
    order: Mutex<Option<(Vec<usize>, GraphOrder)>>,
}

/// For each command, the numbers of the earlier ones that it must follow.
pub(crate) type GraphOrder = Arc<[Vec<usize>]>;

impl KeptGraph {
    /// The order of commands. Those of one thunk follow each other.
    pub fn order(&self, sequence: &ThunkSequence, owners: &[usize]) -> GraphOrder {
        let mut known = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        // A library call may have become kernels, or kernels a library call.
        if let Some((_, order)) = known.as_ref().filter(|(of, _)| of == owners) {
            return order.clone();
        }
        let mut hazards = Hazards::default();
        let found = owners.iter().map(|&owner| hazards.add(&accesses(&sequence.thunks[owner], owner)));
        let order: GraphOrder = found.collect();
        *known = Some((owners.to_vec(), order.clone()));
        order
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
