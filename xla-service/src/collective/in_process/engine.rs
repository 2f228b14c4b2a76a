//! The engine: cliques by run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};

use super::clique::Clique;
use super::group::Group;
use super::job::LocalJob;
use crate::collective::{CliqueKey, CollectiveEngine, Communicator, RunKey, Timeouts};

/// Engine for devices of one process that share its memory.
#[derive(Debug, Default)]
pub struct InProcess {
    timeouts: Timeouts,
    runs: Mutex<HashMap<RunKey, Run>>,
}

#[derive(Debug, Default)]
struct Run {
    failure: Option<Error>,
    cliques: HashMap<CliqueKey, Arc<Clique<LocalJob>>>,
}

impl InProcess {
    /// Creates an engine with these waiting times.
    pub fn new(timeouts: Timeouts) -> InProcess {
        InProcess { timeouts, runs: Mutex::default() }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunKey, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CollectiveEngine for InProcess {
    fn clique(&self, key: &CliqueKey) -> Result<Arc<dyn Communicator>> {
        let mut runs = self.runs();
        let run = runs.entry(key.run()).or_default();
        if let Some(error) = &run.failure {
            return Err(error.again());
        }
        let clique = match run.cliques.entry(key.clone()) {
            Entry::Occupied(clique) => clique.into_mut(),
            Entry::Vacant(place) => place.insert(Arc::new(Clique::new(Group::of(key.clone()), self.timeouts, ()))),
        };
        Ok(clique.clone())
    }

    fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    fn abort(&self, run: RunKey, error: &Error) {
        let mut runs = self.runs();
        let run = runs.entry(run).or_default();
        run.failure.get_or_insert_with(|| error.again());
        run.cliques.values().for_each(|clique| clique.abort(error));
    }

    fn finish(&self, run: RunKey) {
        self.runs().remove(&run);
    }
}
