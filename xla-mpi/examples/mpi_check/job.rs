//! The engine of this process in a job of MPI.

use std::sync::Arc;
use std::time::Duration;

use xla_hlo::Result;
use xla_mpi::Mpi;
use xla_service::collective::processes::{Processes, Transport};
use xla_service::collective::{CollectiveEngine, Timeouts};

/// Number of processes of all checks.
pub const PROCESSES: usize = 4;

/// Returns the transport of this process.
pub fn transport() -> Result<Arc<Mpi>> {
    Mpi::new("cpu", PROCESSES, Duration::from_secs(30))
}

/// Engine of this process.
pub struct Job {
    pub engine: Arc<dyn CollectiveEngine>,
    pub rank: usize,
    /// Number of devices of each process.
    pub devices: usize,
}

impl Job {
    /// Creates the engine. Device `d` belongs to process `d % PROCESSES`.
    pub fn new(devices: usize, timeouts: Timeouts) -> Result<Job> {
        let mpi = transport()?;
        let rank = mpi.rank();
        let processes = (0..PROCESSES * devices).map(|device| (device, device % PROCESSES)).collect();
        Ok(Job { engine: Arc::new(Processes::new(mpi, processes, timeouts)?), rank, devices })
    }

    /// Returns the devices of this process.
    pub fn local(&self) -> impl Iterator<Item = usize> {
        (self.rank..PROCESSES * self.devices).step_by(PROCESSES)
    }
}
