//! One launch of a program over several devices.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};

use xla_hlo::{Error, Result};

use super::engine::{CollectiveEngine, Communicator, Timeouts};
use super::key::{CliqueKey, InstructionKey, RunKey};

/// One launch of a program over several devices: its key, and the failure of the first device that failed.
///
/// Dropping it releases the engine's resources, so the programs of all local devices share it until they end. Nothing
/// aborts the run later.
#[derive(Debug)]
pub struct CollectiveRun {
    engine: Arc<dyn CollectiveEngine>,
    key: RunKey,
    /// Global ids of the program's devices, by logical id; `None` if these are equal.
    assignment: Option<Arc<[usize]>>,
    failure: OnceLock<Error>,
}

impl CollectiveRun {
    /// Begins a run. All processes that take part pass the same key.
    pub fn new(engine: Arc<dyn CollectiveEngine>, key: RunKey) -> CollectiveRun {
        CollectiveRun { engine, key, assignment: None, failure: OnceLock::new() }
    }

    /// Sets the global ids of the program's devices, by logical id. Engines for several processes locate devices by
    /// global id. Without this call, global ids are logical ids.
    #[must_use]
    pub fn on_devices(mut self, devices: Arc<[usize]>) -> CollectiveRun {
        self.assignment = Some(devices);
        self
    }

    /// Returns the key.
    pub fn key(&self) -> RunKey {
        self.key
    }

    /// Returns the maximum waiting times of a device for the others.
    pub fn timeouts(&self) -> Timeouts {
        self.engine.timeouts()
    }

    /// Whether devices of other processes may take part.
    pub fn spans_processes(&self) -> bool {
        self.assignment.is_some()
    }

    /// Returns the communicator of an instruction's group, whose devices are in group order. `devices` holds logical
    /// ids.
    pub fn clique(&self, instruction: &Arc<InstructionKey>, devices: &Arc<[usize]>) -> Result<Arc<dyn Communicator>> {
        let devices = match &self.assignment {
            None => devices.clone(),
            Some(assignment) => {
                let global = |&device: &usize| {
                    assignment.get(device).copied().ok_or_else(|| {
                        let count = assignment.len();
                        Error::internal(format!("{instruction} names device {device} of a run over {count} devices"))
                    })
                };
                devices.iter().map(global).collect::<Result<_>>()?
            }
        };
        self.engine.clique(&CliqueKey::new(self.key, instruction.clone(), devices)?)
    }

    /// Executes the program of one device. If it fails or panics, the collectives of all other devices end with its
    /// error, which names the device.
    pub fn device<T>(&self, device: usize, program: impl FnOnce() -> Result<T>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(program)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.abort(error.again().context(format_args!("device {device}")));
                Err(error)
            }
            Err(panic) => {
                self.abort(Error::internal(format!("the program of device {device} panicked")));
                resume_unwind(panic)
            }
        }
    }

    /// Ends the collectives of all devices with this error, unless the run has failed already.
    pub fn abort(&self, error: Error) {
        let mut error = Some(error);
        let first = self.failure.get_or_init(|| error.take().unwrap_or_else(|| Error::internal("the run has failed")));
        if error.is_none() {
            self.engine.abort(self.key, first);
        }
    }

    /// Returns a copy of the first failure: the cause of the errors of all other devices.
    pub fn failure(&self) -> Option<Error> {
        self.failure.get().map(Error::again)
    }
}

impl Drop for CollectiveRun {
    fn drop(&mut self) {
        self.engine.finish(self.key);
    }
}
