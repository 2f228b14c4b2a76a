//! Values of buffers: memory that is there or will be, shared by all who use it.

use std::sync::{Arc, OnceLock};

use xla_hlo::{Error, Result};

use super::completion::{Completer, Completion};
use crate::executable::Argument;
use crate::executor::{DeviceMemory, Event};
use crate::workers::{Workers, blocking};

/// A value on a device. Whoever reads it has a share; a program that it is donated to takes it if it has the only one.
#[derive(Debug)]
pub(super) struct Value {
    memory: Memory,
    work: Work,
}

/// The memory of a value.
#[derive(Debug)]
enum Memory {
    Given(Arc<DeviceMemory>),
    /// There when the work has been sent.
    Promised(OnceLock<Arc<DeviceMemory>>),
}

/// Work that computes values. It is sent to the device, which may be later, and done some time after that.
#[derive(Clone, Debug, Default)]
pub(super) struct Work(Option<Arc<WorkState>>);

#[derive(Debug)]
struct WorkState {
    /// The end of sending; other work that uses the values can be sent to the same stream from then on.
    sent: Completion,
    /// The stream's event after the work, there when it has been sent.
    event: OnceLock<Event>,
    /// The end of the work, once somebody has asked.
    done: OnceLock<Completion>,
}

/// Says that work was sent.
#[derive(Debug)]
pub(super) struct Sender {
    work: Work,
    completer: Completer,
}

impl Work {
    /// Work that was sent, and is done when the event is reached.
    pub fn sent(event: Event) -> Work {
        if event.is_immediate() {
            return Work(None);
        }
        Work(Some(Arc::new(WorkState { sent: Completion::done(), event: event.into(), done: OnceLock::new() })))
    }

    /// Work that failed before it was sent.
    pub fn failed(error: Error) -> Work {
        Work::after(Completion::failed(error))
    }

    /// Work that somebody will send.
    pub fn pending() -> (Work, Sender) {
        let (sent, completer) = Completion::pending();
        let work = Work::after(sent);
        (work.clone(), Sender { work, completer })
    }

    fn after(sent: Completion) -> Work {
        Work(Some(Arc::new(WorkState { sent, event: OnceLock::new(), done: OnceLock::new() })))
    }

    /// Whether it was sent or has failed before.
    pub fn is_sent(&self) -> bool {
        self.0.as_ref().is_none_or(|state| state.sent.is_ready())
    }

    /// Has code of this crate called when the work is sent or has failed before.
    pub fn when_sent(&self, then: impl FnOnce(Result<()>) + Send + 'static) {
        match &self.0 {
            None => then(Ok(())),
            Some(state) => state.sent.then(then),
        }
    }

    /// The event after it; waits until it is sent.
    pub fn event(&self) -> Result<Event> {
        match &self.0 {
            None => Ok(Event::reached()),
            Some(state) => {
                state.sent.wait()?;
                Ok(state.event.get().cloned().unwrap_or_default())
            }
        }
    }

    /// Waits until it is done.
    pub fn wait(&self) -> Result<()> {
        let event = self.event()?;
        if event.is_reached()? { Ok(()) } else { blocking(|| event.wait()) }
    }

    /// Whether it is done; an error if it never will be.
    pub fn is_done(&self) -> Result<bool> {
        match &self.0 {
            None => Ok(true),
            Some(state) => match state.sent.outcome() {
                None => Ok(false),
                Some(outcome) => outcome.and_then(|()| self.event()?.is_reached()),
            },
        }
    }

    /// The end of it; waiting for a device takes a thread of `workers`.
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
    /// Ends the sending: with the event after the work, or with the error that it failed with.
    pub fn set(self, outcome: Result<Event>) {
        let Sender { work, completer } = self;
        let sent = outcome.map(|event| {
            // It is set here alone, and this happens once.
            work.0.iter().for_each(|state| drop(state.event.set(event.clone())));
        });
        drop(work);
        completer.set(sent);
    }
}

impl Value {
    /// A value that is there when that work is done.
    pub fn new(memory: Arc<DeviceMemory>, work: Work) -> Arc<Value> {
        Arc::new(Value { memory: Memory::Given(memory), work })
    }

    /// A value that is filled before the work counts as sent.
    pub fn pending(work: Work) -> Arc<Value> {
        Arc::new(Value { memory: Memory::Promised(OnceLock::new()), work })
    }

    /// Fills a pending value.
    pub fn fill(&self, memory: Arc<DeviceMemory>) {
        if let Memory::Promised(promised) = &self.memory {
            // It is filled by the one who sends the work, once.
            drop(promised.set(memory));
        }
    }

    /// The work that computes it.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The memory, when it can be used by work sent to the same stream; waits for that.
    pub fn memory(&self) -> Result<&Arc<DeviceMemory>> {
        self.work.event()?;
        self.memory.get().ok_or_else(not_given)
    }

    /// The memory, when the work that computes it is done; waits for that.
    pub fn computed(&self) -> Result<&Arc<DeviceMemory>> {
        self.work.wait()?;
        self.memory.get().ok_or_else(not_given)
    }

    /// The value for a program that reads it; waits until it can be used.
    pub fn read(&self) -> Result<Argument> {
        Ok(Argument::Shared(self.memory()?.clone()))
    }

    /// The value for a program that it was donated to; waits until it can be used. While others have a share, or where
    /// nobody may write to it, the program must not either.
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
    Error::internal("a value was promised and not given")
}
