//! Events: completion of work, with callbacks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xla_hlo::Error;
use xla_service::{Completer, Completion};

use crate::abi::errors::{
    EventAwaitArgs, EventCreateArgs, EventDestroyArgs, EventErrorArgs, EventIsReadyArgs, EventOnReadyArgs, EventSetArgs,
};
use crate::abi::kinds;
use crate::ffi::{Handle, Kind};
use crate::status::{Code, Status};

impl Kind for kinds::Event {
    type Value = Event;
    const NAME: &'static str = "PJRT_Event";
}

/// Completion of some work. A clone is another handle to the same completion.
#[derive(Clone)]
pub(crate) struct Event {
    completion: Completion,
    /// Setter of an event that the caller or another call of the API completes.
    setter: Option<Arc<Setter>>,
}

struct Setter {
    completer: Mutex<Option<Completer>>,
    /// Error as it was set, whose code and payload may have no counterpart in the service's errors.
    status: OnceLock<Status>,
}

type Outcome = Result<(), Status>;

impl Event {
    /// Creates an event for work of the service.
    pub fn of(completion: Completion) -> Event {
        Event { completion, setter: None }
    }

    /// Creates a completed event.
    pub fn done() -> Event {
        Event::of(Completion::done())
    }

    /// Creates an event that [`Event::set`] completes.
    pub fn pending() -> Event {
        let (completion, completer) = Completion::pending();
        let setter = Setter { completer: Mutex::new(Some(completer)), status: OnceLock::new() };
        Event { completion, setter: Some(Arc::new(setter)) }
    }

    /// Creates a handle for C, which destroys it.
    pub fn handle(self) -> Handle<kinds::Event> {
        Handle::new(self)
    }

    /// Sets the outcome and runs the callbacks. An error if it was already set, or if the event cannot be set.
    pub fn set(&self, outcome: Outcome) -> Result<(), Status> {
        let taken = self.setter.as_ref().and_then(|setter| {
            let completer = setter.completer.lock().unwrap_or_else(PoisonError::into_inner).take();
            Some((setter, completer?))
        });
        let Some((setter, completer)) = taken else {
            return Err(Status::failed_precondition("the event is already set, or cannot be set by the caller"));
        };
        completer.set(outcome.map_err(|status| {
            let error = Error::from(&status);
            setter.status.get_or_init(|| status);
            error
        }));
        Ok(())
    }

    /// Returns the outcome if the work is complete.
    pub fn outcome(&self) -> Option<Outcome> {
        self.completion.outcome().map(|outcome| self.told(outcome))
    }

    /// Waits for the outcome.
    pub fn wait(&self) -> Outcome {
        self.told(self.completion.wait())
    }

    /// Calls `callback` with the outcome; immediately, if the work is complete.
    pub fn on_ready(&self, callback: impl FnOnce(Outcome) + Send + 'static) {
        // The callback does not hold the event itself, because a waiting callback must not prevent its destruction.
        let setter = self.setter.as_ref().map(Arc::downgrade);
        self.completion.on_ready(move |outcome| {
            let setter = setter.and_then(|setter| setter.upgrade());
            callback(told(setter.as_deref(), outcome));
        });
    }

    fn told(&self, outcome: xla_hlo::Result<()>) -> Outcome {
        told(self.setter.as_deref(), outcome)
    }
}

/// Converts an outcome; the error is the one that was set, if any.
fn told(setter: Option<&Setter>, outcome: xla_hlo::Result<()>) -> Outcome {
    let set = setter.and_then(|setter| setter.status.get());
    outcome.map_err(|error| set.cloned().unwrap_or_else(|| error.into()))
}

pub(crate) fn destroy(args: &EventDestroyArgs) -> Result<(), Status> {
    args.event.destroy()
}

pub(crate) fn is_ready(args: &EventIsReadyArgs) -> Result<(), Status> {
    args.is_ready.set(args.event.get()?.outcome().is_some());
    Ok(())
}

pub(crate) fn error(args: &EventErrorArgs) -> Result<(), Status> {
    let outcome = args.event.get()?.outcome();
    outcome.unwrap_or_else(|| Err(Status::failed_precondition("the event is not ready: wait for it first")))
}

pub(crate) fn wait(args: &EventAwaitArgs) -> Result<(), Status> {
    args.event.get()?.wait()
}

pub(crate) fn on_ready(args: &EventOnReadyArgs) -> Result<(), Status> {
    let (callback, argument) = (args.callback, args.user_arg);
    if callback.is_null() {
        return Err(Status::invalid_argument("the callback of an event must not be null"));
    }
    args.event.get()?.on_ready(move |outcome| callback.call(outcome, argument));
    Ok(())
}

pub(crate) fn create(args: &EventCreateArgs) -> Result<(), Status> {
    args.event.set(Event::pending().handle());
    Ok(())
}

pub(crate) fn set(args: &EventSetArgs) -> Result<(), Status> {
    let outcome = match Code::from_number(args.error_code) {
        Code::Ok => Ok(()),
        code => Err(Status::new(code, args.error_message.as_str()?)),
    };
    args.event.get()?.set(outcome)
}
