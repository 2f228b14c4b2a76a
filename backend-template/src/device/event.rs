//! Events: points in a queue that other queues and the host can wait for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};

use super::memory::SharedError;

/// Point in a queue's sequence of commands. It is reached, or it fails with the first error since the queue's previous
/// event. Clones are handles to the same event.
#[derive(Clone, Debug)]
pub struct Event(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    outcome: Mutex<Option<Result<(), SharedError>>>,
    changed: Condvar,
}

impl Event {
    /// Creates an event and its completer. If the completer is dropped unused, the event fails, so that no waiter
    /// blocks forever.
    pub(super) fn pending() -> (Event, Completer) {
        let event = Event(Arc::default());
        (event.clone(), Completer(Some(event)))
    }

    /// Whether the event is reached; returns the error if work before it failed.
    pub fn is_reached(&self) -> Result<bool> {
        match &*self.outcome() {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(failure)) => Err(failure.again()),
        }
    }

    /// Waits for the event; returns the error if work before it failed.
    pub fn wait(&self) -> Result<()> {
        match &*self.wait_for_outcome() {
            Some(Err(failure)) => Err(failure.again()),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Waits until the event is reached or has failed, and returns the outcome.
    pub(super) fn settle(&self) -> Result<(), SharedError> {
        self.wait_for_outcome().clone().unwrap_or(Ok(()))
    }

    fn wait_for_outcome(&self) -> MutexGuard<'_, Option<Result<(), SharedError>>> {
        let mut outcome = self.outcome();
        while outcome.is_none() {
            outcome = self.0.changed.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
        outcome
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<(), SharedError>>> {
        self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unique handle that completes an event.
#[derive(Debug)]
pub(super) struct Completer(Option<Event>);

impl Completer {
    /// Completes the event.
    pub fn complete(mut self, outcome: Result<(), SharedError>) {
        self.set(outcome);
    }

    fn set(&mut self, outcome: Result<(), SharedError>) {
        if let Some(event) = self.0.take() {
            *event.outcome() = Some(outcome);
            event.0.changed.notify_all();
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        self.set(Err(SharedError::new(Error::internal("the queue ended before the event"))));
    }
}
