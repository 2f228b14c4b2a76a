//! Program code on one device, with the graphs that are kept of its runs of thunks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xla_hlo::Result;
use xla_passes::buffers::AllocationId;
use xla_service::thunks::{Thunk, ThunkId};

use super::arrangement::{Arrangement, Step};
use crate::autotune::{Candidate, Work};
use crate::cuda::graph::GraphSlot;
use crate::cuda::library::Libraries;
use crate::cuda::module::CudaModule;
use crate::program::commands::CommandSequence;

/// The code on one device.
#[derive(Debug)]
pub(crate) struct LoadedProgram {
    /// By the first thunk of the run, or a loop's or conditional's own. They go before the code that they launch.
    graphs: Mutex<HashMap<ThunkId, Arc<KeptGraph>>>,
    pub(crate) module: CudaModule,
    pub(crate) libraries: Arc<Libraries>,
    /// The chosen candidates for this program's work; none where a library is absent or does not take its call, or
    /// where nothing is known.
    pub(crate) candidates: Mutex<HashMap<Work, Option<Candidate>>>,
}

impl LoadedProgram {
    /// Code and libraries of one device; no graph is kept yet.
    pub fn new(module: CudaModule, libraries: Arc<Libraries>) -> LoadedProgram {
        LoadedProgram { module, libraries, candidates: Mutex::default(), graphs: Mutex::default() }
    }

    /// The graph of the run that begins with that thunk, or of that loop or conditional.
    pub fn kept(&self, thunk: ThunkId) -> Arc<KeptGraph> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner).entry(thunk).or_default().clone()
    }
}

/// A run of thunks that is kept.
#[derive(Debug, Default)]
pub(crate) struct KeptGraph {
    pub slot: GraphSlot,
    needs: OnceLock<RunNeeds>,
    arrangement: Mutex<Option<Arc<Arrangement>>>,
}

/// The memory of a run's commands, whatever its addresses are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunNeeds {
    /// The allocations, each with the bytes from its beginning that are used.
    pub allocations: Vec<(AllocationId, usize)>,
    /// Bytes of the scratch memories, those of one thunk after those of another.
    pub scratch: Vec<usize>,
    /// Whether random numbers are drawn, so that no run is as the one before.
    pub draws: bool,
}

impl KeptGraph {
    /// The needs of the run, which are found once.
    pub fn needs(&self, find: impl FnOnce() -> Result<RunNeeds>) -> Result<&RunNeeds> {
        match self.needs.get() {
            Some(needs) => Ok(needs),
            None => find().map(|found| self.needs.get_or_init(|| found)),
        }
    }

    /// The arrangement of the latest run that was recorded, if there was one.
    pub fn latest_arrangement(&self) -> Option<Arc<Arrangement>> {
        self.arrangement.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The arrangement of those commands.
    pub fn arrangement(&self, thunks: &[Thunk], steps: Vec<Step>) -> Arc<Arrangement> {
        let mut known = self.arrangement.lock().unwrap_or_else(PoisonError::into_inner);
        // A library call may have become kernels, or kernels a library call.
        if let Some(arrangement) = known.as_ref().filter(|known| known.steps == steps) {
            return arrangement.clone();
        }
        let found = Arc::new(Arrangement::new(thunks, steps));
        *known = Some(found.clone());
        found
    }
}

impl RunNeeds {
    /// The needs of thunks with those commands.
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
