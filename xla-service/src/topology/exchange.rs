//! Exchange of the devices of all processes.

use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::store::{KeyValueStore, publish};
use super::{GlobalDevice, Topology, decode, encode, numbered};

/// Maximum number of missing processes that an error names.
const MAX_NAMED: usize = 16;

/// Exchange of one process, in execution.
struct Exchange<'a> {
    store: &'a dyn KeyValueStore,
    platform: &'a str,
    processes: usize,
    start: Instant,
    timeout: Duration,
}

/// Publishes the devices of this process, given by their models, and returns the devices of all processes of the job.
/// All processes call it with the same platform and number of processes.
///
/// [`Error::FailedPrecondition`] if a process does not publish its devices within `timeout` (the message names it), or
/// if a process with the same number has published other devices.
pub fn exchange(
    store: &dyn KeyValueStore,
    platform: &str,
    (process, processes): (usize, usize),
    models: Vec<String>,
    timeout: Duration,
) -> Result<Topology> {
    if process >= processes {
        return Err(Error::invalid_argument(format!("process {process} is not one of {processes} processes")));
    }
    let exchange = Exchange { store, platform, processes, start: Instant::now(), timeout };
    let models: Vec<String> = models.iter().map(|model| model.replace(['\n', '\r'], " ")).collect();
    let lines: String = models.iter().map(|model| format!("{model}\n")).collect();
    publish(store, &exchange.key_of(process), lines.as_bytes())?;
    if process == 0 {
        publish(store, &exchange.key_of_all(), encode(&exchange.collect()?).as_bytes())?;
    }
    let list = store.get(&exchange.key_of_all(), exchange.left()).map_err(|error| exchange.missing(error))?;
    let malformed = || Error::failed_precondition("the published list of devices is malformed or of another job");
    let devices = decode(text(&list)?).ok_or_else(malformed)?;
    let own = devices.iter().filter(|device| device.process == process).map(|device| &device.model);
    if !own.eq(&models) {
        return Err(Error::failed_precondition(format!(
            "the published list of devices has others of process {process} than the process itself"
        )));
    }
    Topology::new(process, processes, devices)
}

impl Exchange<'_> {
    fn key_of(&self, process: usize) -> String {
        format!("xlars/{}/devices/{process}", self.platform)
    }

    fn key_of_all(&self) -> String {
        format!("xlars/{}/devices", self.platform)
    }

    fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.start.elapsed())
    }

    /// Returns the devices of all processes, numbered process by process.
    fn collect(&self) -> Result<Vec<GlobalDevice>> {
        let mut devices = Vec::new();
        for process in 0..self.processes {
            let models = self.store.get(&self.key_of(process), self.left()).map_err(|error| self.missing(error))?;
            let models = text(&models)?.lines().map(str::to_string).collect();
            devices.extend(numbered(process, models));
        }
        Ok(devices)
    }

    /// Returns the error of a wait that failed: it names the processes that have not published their devices.
    fn missing(&self, error: Error) -> Error {
        let is_missing = |&process: &usize| !matches!(self.store.try_get(&self.key_of(process)), Ok(Some(_)));
        let mut missing: Vec<usize> = (0..self.processes).filter(is_missing).take(MAX_NAMED).collect();
        if missing.is_empty() {
            missing.push(0);
        }
        let names = missing.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        Error::failed_precondition(format!(
            "of {} processes, these have not published their devices of platform {} within {} s: {names}; start all \
             processes with the same platform and number of processes ({})",
            self.processes,
            self.platform,
            self.timeout.as_secs_f32(),
            error.message()
        ))
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::failed_precondition("published devices are not UTF-8 text"))
}
