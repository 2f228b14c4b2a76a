//! Code of a program on one device, with the graphs of its runs of thunks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xla_hlo::Result;
use xla_passes::buffers::AllocationId;
use xla_service::thunks::{Thunk, ThunkId};

use super::graph_order::{GraphOrder, Step};
use crate::autotune::{Candidate, Work};
use crate::cuda::graph::GraphSlot;
use crate::cuda::library::Libraries;
use crate::cuda::module::CudaModule;
use crate::program::commands::CommandSequence;

/// Code of a program on one device.
#[derive(Debug)]
pub(crate) struct LoadedProgram {
    /// Graphs by the first thunk of their run, or by the thunk of a loop or conditional. This field comes first, so
    /// that graphs are dropped before the code that they launch.
    graphs: Mutex<HashMap<ThunkId, Arc<KeptGraph>>>,
    pub(crate) module: CudaModule,
    pub(crate) libraries: Arc<Libraries>,
    /// Chosen candidates for the work of this program; `None` if a library is absent or does not take its call, or if
    /// no measurement is known.
    pub(crate) candidates: Mutex<HashMap<Work, Option<Candidate>>>,
}

impl LoadedProgram {
    /// Stores the code and libraries of one device, without graphs.
    pub fn new(module: CudaModule, libraries: Arc<Libraries>) -> LoadedProgram {
        LoadedProgram { module, libraries, candidates: Mutex::default(), graphs: Mutex::default() }
    }

    /// Returns the graph of the run that begins with `thunk`, or of that loop or conditional.
    pub fn kept(&self, thunk: ThunkId) -> Arc<KeptGraph> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner).entry(thunk).or_default().clone()
    }
}

/// State of a run of thunks that is reused by later runs.
#[derive(Debug, Default)]
pub(crate) struct KeptGraph {
    pub slot: GraphSlot,
    needs: OnceLock<RunNeeds>,
    order: Mutex<Option<Arc<GraphOrder>>>,
}

/// Memory that the commands of a run need, independent of its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunNeeds {
    /// Allocations, each with the number of bytes used from its start.
    pub allocations: Vec<(AllocationId, usize)>,
    /// Sizes of the scratch memories in bytes, in the order of the thunks.
    pub scratch: Vec<usize>,
    /// Whether random numbers are drawn, so that the arguments of each run differ.
    pub draws: bool,
}

impl KeptGraph {
    /// Returns the needs of the run, which `find` computes once.
    pub fn needs(&self, find: impl FnOnce() -> Result<RunNeeds>) -> Result<&RunNeeds> {
        match self.needs.get() {
            Some(needs) => Ok(needs),
            None => find().map(|found| self.needs.get_or_init(|| found)),
        }
    }

    /// Returns the order of the last recorded run, if there is one.
    pub fn latest_order(&self) -> Option<Arc<GraphOrder>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the order of these commands: the last one if the commands are equal, otherwise a new one.
    pub fn graph_order(&self, thunks: &[Thunk], steps: Vec<Step>) -> Arc<GraphOrder> {
        let mut known = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        // The fallback of a library call may have replaced it, or the reverse.
        if let Some(order) = known.as_ref().filter(|known| known.steps == steps) {
            return order.clone();
        }
        let found = Arc::new(GraphOrder::new(thunks, steps));
        *known = Some(found.clone());
        found
    }
}

impl RunNeeds {
    /// Computes the needs of thunks with these commands.
    pub fn of(thunks: &[Thunk], commands: &[Option<&CommandSequence>]) -> RunNeeds {
        let mut allocations = BTreeMap::new();
        for array in thunks.iter().flat_map(|thunk| thunk.operands.iter().chain(&thunk.results)) {
            let end = array.slice.offset + array.slice.size;
            let known = allocations.entry(array.slice.allocation).or_insert(end);
            *known = end.max(*known);
        }
        let commands = || commands.iter().copied().flatten();
        RunNeeds {
            allocations: allocations.into_iter().collect(),
            scratch: commands().flat_map(|commands| commands.scratch.iter().copied()).collect(),
            draws: commands().any(|commands| commands.rng_delta.is_some()),
        }
    }
}
