//! Profiles: the `tracing` spans of compilations, executions and thunks between start and stop, as an `XSpace` message.

mod recorder;
mod xspace;

use std::sync::{Arc, Mutex, PoisonError};

use crate::status::Status;

/// Profiler: can be started and stopped repeatedly; the data of the last profile can be read any number of times.
#[derive(Default)]
pub(crate) struct Profiler(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    New,
    Running,
    /// Encoded `XSpace`.
    Done(Arc<[u8]>),
}

impl Profiler {
    /// Starts to record. An error if another profile is being recorded, because a process has one recorder.
    pub fn start(&self) -> Result<(), Status> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::New | State::Done(_) => recorder::start()?,
            State::Running => return Err(Status::failed_precondition("the profiler is already running")),
        }
        *state = State::Running;
        Ok(())
    }

    /// Stops recording.
    pub fn stop(&self) -> Result<(), Status> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Running => *state = State::Done(finish()),
            State::New | State::Done(_) => {
                return Err(Status::failed_precondition("the profiler is not running: start it first"));
            }
        }
        Ok(())
    }

    /// Returns the encoded `XSpace`.
    pub fn data(&self) -> Result<Arc<[u8]>, Status> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Done(data) => Ok(data.clone()),
            State::New | State::Running => {
                Err(Status::failed_precondition("the profiler has no profile yet: stop it first"))
            }
        }
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if matches!(self.0.get_mut().unwrap_or_else(PoisonError::into_inner), State::Running) {
            drop(recorder::stop());
        }
    }
}

fn finish() -> Arc<[u8]> {
    recorder::stop().map_or_else(Vec::new, |recording| xspace::encode(&recording)).into()
}
