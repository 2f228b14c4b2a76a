//! Values of buffers: available or pending memory, shared by all users.

use std::sync::{Arc, OnceLock};

use xla_hlo::{Error, Result};

use super::completion::{Completer, Completion};
use crate::executable::Argument;
use crate::executor::{DeviceMemory, Event};
use crate::workers::{Workers, blocking};

/// Value on a device. Each reader has a share. A program takes a donated value over if it has the only share.
#[derive(Debug)]
pub(super) struct Value {
    memory: Memory,
    work: Work,
}

/// Memory of a value.
#[derive(Debug)]
enum Memory {
    Given(Arc<DeviceMemory>),
    /// Memory that is set by the time the work is sent.
    Promised(OnceLock<Arc<DeviceMemory>>),
}

/// Work that computes values. It is first sent to the device, possibly later, and then completes asynchronously.
#[derive(Clone, Debug, Default)]
pub(super) struct Work(Option<Arc<WorkState>>);

#[derive(Debug)]
struct WorkState {
    /// Completion of sending. Afterwards, work that uses the values can be sent to the same stream.
    sent: Completion,
    /// Event of the stream after the work, set when the work has been sent.
    event: OnceLock<Event>,
    /// Completion of the work, created on first use.
    done: OnceLock<Completion>,
}

/// Handle that marks work as sent.
#[derive(Debug)]
pub(super) struct Sender {
    work: Work,
    completer: Completer,
}

impl Work {
    /// Creates work that was sent, and is done when the event is reached.
    pub fn sent(event: Event) -> Work {
        if event.is_immediate() {
            return Work(None);
        }
        Work(Some(Arc::new(WorkState { sent: Completion::done(), event: event.into(), done: OnceLock::new() })))
    }

    /// Creates work that failed before it was sent.
    pub fn failed(error: Error) -> Work {
        Work::after(Completion::failed(error))
    }

    /// Creates work that will be sent later, and its sender.
    pub fn pending() -> (Work, Sender) {
        let (sent, completer) = Completion::pending();
        let work = Work::after(sent);
        (work.clone(), Sender { work, completer })
    }

    fn after(sent: Completion) -> Work {
        Work(Some(Arc::new(WorkState { sent, event: OnceLock::new(), done: OnceLock::new() })))
    }

    /// Whether the work was sent, or failed before.
    pub fn is_sent(&self) -> bool {
        self.0.as_ref().is_none_or(|state| state.sent.is_ready())
    }

    /// Calls `then` when the work is sent or has failed before. Only for callbacks of this crate.
    pub fn when_sent(&self, then: impl FnOnce(Result<()>) + Send + 'static) {
        match &self.0 {
            None => then(Ok(())),
            Some(state) => state.sent.then(then),
        }
    }

    /// Waits until the work is sent and returns the event after it.
    pub fn event(&self) -> Result<Event> {
        match &self.0 {
            None => Ok(Event::reached()),
            Some(state) => {
                state.sent.wait()?;
                Ok(state.event.get().cloned().unwrap_or_default())
            }
        }
    }

    /// Waits until the work is done.
    pub fn wait(&self) -> Result<()> {
        let event = self.event()?;
        if event.is_reached()? { Ok(()) } else { blocking(|| event.wait()) }
    }

    /// Whether the work is done; an error if it failed.
    pub fn is_done(&self) -> Result<bool> {
        match &self.0 {
            None => Ok(true),
            Some(state) => match state.sent.outcome() {
                None => Ok(false),
                Some(outcome) => outcome.and_then(|()| self.event()?.is_reached()),
            },
        }
    }

    /// Returns the completion of the work. Waiting for a device occupies a thread of `workers`.
    pub fn completion(&self, workers: &Arc<Workers>) -> Completion {
        let Some(state) = &self.0 else { return Completion::done() };
        let make = || {
            let (done, completer) = Completion::pending();
            let (work, workers) = (self.clone(), workers.clone());
            state.sent.then(move |_| match work.is_done() {
                Ok(false) => workers.spawn(Box::new(move || completer.set(work.wait()))),
                outcome => completer.set(outcome.map(drop)),
            });
            done
        };
        state.done.get_or_init(make).clone()
    }
}

impl Sender {
    /// Marks the work as sent, with the event after it, or as failed.
    pub fn set(self, outcome: Result<Event>) {
        let Sender { work, completer } = self;
        let sent = outcome.map(|event| {
            // The only place that sets the event, executed once.
            work.0.iter().for_each(|state| drop(state.event.set(event.clone())));
        });
        drop(work);
        completer.set(sent);
    }
}

impl Value {
    /// Creates a value whose memory exists and whose contents are valid when the work is done.
    pub fn new(memory: Arc<DeviceMemory>, work: Work) -> Arc<Value> {
        Arc::new(Value { memory: Memory::Given(memory), work })
    }

    /// Creates a value that is filled before its work counts as sent.
    pub fn pending(work: Work) -> Arc<Value> {
        Arc::new(Value { memory: Memory::Promised(OnceLock::new()), work })
    }

    /// Fills a pending value.
    pub fn fill(&self, memory: Arc<DeviceMemory>) {
        if let Memory::Promised(promised) = &self.memory {
            // Only the sender of the work fills the value, once.
            drop(promised.set(memory));
        }
    }

    /// Returns the work that computes the value.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// Waits until work on the same stream can use the memory, and returns it.
    pub fn memory(&self) -> Result<&Arc<DeviceMemory>> {
        self.work.event()?;
        self.memory.get().ok_or_else(not_given)
    }

    /// Waits until the work that computes the value is done, and returns the memory.
    pub fn computed(&self) -> Result<&Arc<DeviceMemory>> {
        self.work.wait()?;
        self.memory.get().ok_or_else(not_given)
    }

    /// Waits until the value can be used, and returns it as a read-only argument.
    pub fn read(&self) -> Result<Argument> {
        Ok(Argument::Shared(self.memory()?.clone()))
    }

    /// Waits until the value can be used, and returns it as an argument for the program that it was donated to. The
    /// argument is read-only if the value has other shares or its memory is read-only.
    pub fn take(self: Arc<Self>) -> Result<Argument> {
        self.work.event()?;
        let memory = match Arc::try_unwrap(self) {
            Ok(value) => value.memory.into_inner().ok_or_else(not_given)?,
            Err(shared) => return shared.read(),
        };
        if memory.is_read_only() {
            return Ok(Argument::Shared(memory));
        }
        Ok(Arc::try_unwrap(memory).map_or_else(Argument::Shared, Argument::Donated))
    }
}

impl Memory {
    fn get(&self) -> Option<&Arc<DeviceMemory>> {
        match self {
            Memory::Given(memory) => Some(memory),
            Memory::Promised(promised) => promised.get(),
        }
    }

    fn into_inner(self) -> Option<Arc<DeviceMemory>> {
        match self {
            Memory::Given(memory) => Some(memory),
            Memory::Promised(promised) => promised.into_inner(),
        }
    }
}

fn not_given() -> Error {
    Error::internal("the promised value of a buffer was not set")
}
