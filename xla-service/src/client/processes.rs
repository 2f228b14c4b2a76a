//! Processes of a job: options of a client whose devices cooperate with those of other processes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use xla_hlo::{Error, Result};

use crate::collective::processes::{Processes, Transport};
use crate::collective::{CollectiveEngine, Timeouts};
use crate::topology::{KeyValueStore, Topology, exchange};

/// Options of a client that is one process of a job.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// Number of this process, less than `processes`.
    pub process: usize,
    /// Number of processes.
    pub processes: usize,
    /// Store that the processes share.
    pub store: Arc<dyn KeyValueStore>,
    /// Connection to the other processes.
    pub connector: Arc<dyn Connector>,
    /// Maximum time to wait for the other processes when the client is created.
    pub timeout: Duration,
    /// Maximum times to wait for other devices in a collective. Processes do not start programs at the same time: one
    /// may compile, or write files, for minutes. Connections report processes that have ended.
    pub collective_timeouts: Timeouts,
}

impl ProcessOptions {
    /// Default of [`ProcessOptions::collective_timeouts`]: one minute and 30 minutes, as XLA:CPU.
    pub const COLLECTIVE_TIMEOUTS: Timeouts =
        Timeouts { warn: Duration::from_secs(60), end: Duration::from_secs(30 * 60) };
}

/// Connects the processes of a job with each other.
pub trait Connector: fmt::Debug + Send + Sync {
    /// Returns the transport of this process for a client of a platform. Its rank and size are the number of the
    /// process and the number of processes. All processes call it, for clients of one platform in the same
    /// order. If a connector cannot pair clients of different platforms that processes create in different orders, it
    /// returns an error that names both platforms.
    fn connect(&self, platform: &str, options: &ProcessOptions) -> Result<Arc<dyn Transport>>;
}

impl ProcessOptions {
    /// Exchanges the devices of all processes, and connects the processes.
    pub(super) fn connect(&self, platform: &str, models: Vec<String>) -> Result<(Topology, Arc<dyn CollectiveEngine>)> {
        let place = (self.process, self.processes);
        let topology = exchange(&*self.store, platform, place, models, self.timeout)?;
        let transport = self.connector.connect(platform, self)?;
        if (transport.rank(), transport.size()) != place {
            return Err(Error::failed_precondition(format!(
                "the transport of collectives has process {} of {}, but the client is process {} of {}; start as many \
                 processes with it as the client has, and number them equally",
                transport.rank(),
                transport.size(),
                self.process,
                self.processes
            )));
        }
        let processes: HashMap<usize, usize> =
            topology.devices().iter().enumerate().map(|(id, device)| (id, device.process)).collect();
        Ok((topology, Arc::new(Processes::new(transport, processes, self.collective_timeouts)?)))
    }
}
