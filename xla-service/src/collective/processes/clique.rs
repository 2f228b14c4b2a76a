//! Communicator of a group with devices in other processes.

use std::sync::Arc;

use xla_hlo::{Error, Result};

use super::hub::Hub;
use super::job::ProcessJob;
use super::route::Route;
use super::run_table::LocalMembers;
use crate::collective::in_process::{Clique, Group, LocalJob};
use crate::collective::{CliqueKey, CollectiveCall, Communicator};

/// Local members of a group. A failure of theirs is a failure of the run in all processes.
#[derive(Debug)]
pub(super) struct ProcessClique {
    local: Box<dyn Communicator>,
    hub: Arc<Hub>,
}

impl ProcessClique {
    pub fn new(hub: &Arc<Hub>, key: &CliqueKey) -> Result<ProcessClique> {
        let route = Route::new(hub, key)?;
        let is_local = route.others().next().is_none();
        let local: Box<dyn Communicator> = match is_local {
            true => Box::new(Clique::<LocalJob>::new(Group::of(key.clone()), hub.timeouts, ())),
            false => {
                let group = Group { key: key.clone(), ranks: route.local().to_vec(), locations: Some(hub.clone()) };
                Box::new(Clique::<ProcessJob>::new(group, hub.timeouts, Arc::new(route)))
            }
        };
        Ok(ProcessClique { local, hub: hub.clone() })
    }
}

impl Communicator for ProcessClique {
    fn key(&self) -> &CliqueKey {
        self.local.key()
    }

    fn run(&self, rank: usize, call: CollectiveCall<'_>) -> Result<()> {
        self.local.run(rank, call).inspect_err(|error| self.hub.abort(self.key().run(), error))
    }

    fn abort(&self, error: &Error) {
        self.hub.abort(self.key().run(), error);
    }
}

impl LocalMembers for ProcessClique {
    fn abort_local(&self, error: &Error) {
        self.local.abort(error);
    }
}
