//! The engine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use xla_hlo::{Error, Result};

use super::clique::ProcessClique;
use super::hub::Hub;
use super::mailbox::Mailbox;
use super::transport::Transport;
use crate::collective::{CliqueKey, CollectiveEngine, Communicator, RunKey, Timeouts};

/// Engine for the devices of several processes.
///
/// If a collective fails in one process, its run fails in all processes, with the first error.
#[derive(Debug)]
pub struct Processes {
    hub: Arc<Hub>,
}

impl Processes {
    /// Creates the engine of this process. `processes` holds the rank of each device's process, by the device's global
    /// id. It is equal in all processes.
    pub fn new(
        transport: Arc<dyn Transport>,
        processes: HashMap<usize, usize>,
        timeouts: Timeouts,
    ) -> Result<Processes> {
        let size = transport.size();
        if let Some((device, rank)) = processes.iter().filter(|(_, rank)| **rank >= size).min() {
            let message = format!("device {device} is in process {rank}, but there are {size} processes");
            return Err(Error::invalid_argument(message));
        }
        let mailbox = Arc::new(Mailbox::default());
        transport.connect(mailbox.clone())?;
        Ok(Processes { hub: Arc::new(Hub { transport, mailbox, processes, timeouts }) })
    }
}

impl CollectiveEngine for Processes {
    fn clique(&self, key: &CliqueKey) -> Result<Arc<dyn Communicator>> {
        let mut table = self.hub.mailbox.table();
        let run = table.run(key.run());
        if let Some(error) = &run.failure {
            return Err(error.again());
        }
        let clique = match run.cliques.entry(key.clone()) {
            Entry::Occupied(clique) => clique.into_mut(),
            Entry::Vacant(place) => place.insert(Arc::new(ProcessClique::new(&self.hub, key)?)),
        };
        Ok(clique.clone())
    }

    fn timeouts(&self) -> Timeouts {
        self.hub.timeouts
    }

    fn abort(&self, run: RunKey, error: &Error) {
        self.hub.abort(run, error);
    }

    fn finish(&self, run: RunKey) {
        let run = self.hub.mailbox.table().finish(run);
        drop(run);
    }
}
