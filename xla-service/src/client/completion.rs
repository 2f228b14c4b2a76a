//! Completions: whether work is done or has failed, with waiting and callbacks.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use xla_hlo::{Error, Result};

use crate::forked;
use crate::workers::{blocking, host_call};

/// The end of some work: pending, done, or failed with an error. A clone is another handle to the same end.
///
/// (PJRT: `PJRT_Event`.) One that was done when it was made costs nothing.
#[derive(Clone, Default)]
pub struct Completion(Option<Arc<Shared>>);

/// Sets a [`Completion`], once. Dropped without that, it sets [`Error::Cancelled`].
#[derive(Debug)]
pub struct Completer(Option<Arc<Shared>>);

/// Called once with the outcome.
type Callback = Box<dyn FnOnce(Result<()>) + Send>;

#[derive(Default)]
struct Shared {
    outcome: OnceLock<Result<()>>,
    /// Changed with the outcome under its lock.
    waiting: Mutex<Waiting>,
    set: Condvar,
}

/// Those who wait for an outcome.
#[derive(Default)]
struct Waiting {
    callbacks: Vec<Callback>,
    /// Whether threads sleep, so that waking them, a call of the system, is worth it.
    has_threads: bool,
}

impl Completion {
    /// The end of work that is done.
    pub fn done() -> Completion {
        Completion(None)
    }

    /// The end of work that has failed.
    pub fn failed(error: Error) -> Completion {
        let (completion, completer) = Completion::pending();
        completer.set(Err(error));
        completion
    }

    /// The end of work, done or failed.
    pub fn of(outcome: Result<()>) -> Completion {
        outcome.map_or_else(Completion::failed, |()| Completion::done())
    }

    /// The end of work that somebody else does, and what to report it with.
    pub fn pending() -> (Completion, Completer) {
        let shared = Arc::new(Shared::default());
        (Completion(Some(shared.clone())), Completer(Some(shared)))
    }

    /// The end of all of them: it fails with the error of the first that failed, when all have ended.
    pub fn all(parts: impl IntoIterator<Item = Completion>) -> Completion {
        let mut parts: Vec<Completion> = parts.into_iter().filter(|part| !part.is_done()).collect();
        match parts.len() {
            0 => Completion::done(),
            1 => parts.remove(0),
            _ => {
                let (completion, completer) = Completion::pending();
                let last = parts.clone();
                let rest = Arc::new(Mutex::new(Some((completer, parts.len()))));
                for part in parts {
                    let (rest, last) = (rest.clone(), last.clone());
                    part.then(move |_| count_down(&rest, &last));
                }
                completion
            }
        }
    }

    /// The same end, but not before that of `other` work, which may be a failure.
    #[must_use]
    pub fn not_before(self, other: &Completion) -> Completion {
        if other.is_ready() {
            return self;
        }
        let (completion, completer) = Completion::pending();
        other.then(move |_| self.then(move |outcome| completer.set(outcome)));
        completion
    }

    /// Whether the work has ended, well or not.
    pub fn is_ready(&self) -> bool {
        self.outcome().is_some()
    }

    /// Whether the work is done and has not failed.
    pub fn is_done(&self) -> bool {
        matches!(self.outcome(), Some(Ok(())))
    }

    /// The outcome, if the work has ended.
    pub fn outcome(&self) -> Option<Result<()>> {
        match &self.0 {
            None => Some(Ok(())),
            Some(shared) => shared.outcome.get().map(again),
        }
    }

    /// Waits for the end.
    pub fn wait(&self) -> Result<()> {
        let Some(shared) = &self.0 else { return Ok(()) };
        if let Some(outcome) = shared.outcome.get() {
            return again(outcome);
        }
        forked::check()?;
        blocking(|| shared.wait())
    }

    /// Has `callback` called with the outcome: now and here if the work has ended, else by the thread that ends it. It
    /// may call anything of this crate, and no lock is held meanwhile.
    pub fn on_ready(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        // A panic has been reported by the panic hook; it must not take the thread along that ends the work.
        self.then(move |outcome| drop(catch_unwind(AssertUnwindSafe(|| host_call(|| callback(outcome))))));
    }

    /// The same for code of this crate, which neither waits nor panics nor calls code of others.
    pub(crate) fn then(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        let outcome = match &self.0 {
            None => Ok(()),
            Some(shared) => match shared.outcome.get() {
                Some(outcome) => again(outcome),
                None if forked::is_forked() => forked::check(),
                None => {
                    let mut waiting = shared.waiting();
                    match shared.outcome.get() {
                        None => return waiting.callbacks.push(Box::new(callback)),
                        Some(outcome) => again(outcome),
                    }
                }
            },
        };
        callback(outcome);
    }
}

impl Completer {
    /// Ends the work.
    pub fn set(mut self, outcome: Result<()>) {
        if let Some(shared) = self.0.take() {
            shared.set(outcome);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.set(Err(Error::cancelled("the work was given up: nobody is left who could end it")));
        }
    }
}

impl Shared {
    fn set(&self, outcome: Result<()>) {
        let mut waiting = self.waiting();
        // The completer is the only one that sets it, once.
        let outcome = self.outcome.get_or_init(|| outcome);
        let Waiting { callbacks, has_threads } = std::mem::take(&mut *waiting);
        drop(waiting);
        if has_threads {
            self.set.notify_all();
        }
        callbacks.into_iter().for_each(|callback| callback(again(outcome)));
    }

    fn wait(&self) -> Result<()> {
        let mut waiting = self.waiting();
        loop {
            if let Some(outcome) = self.outcome.get() {
                return again(outcome);
            }
            waiting.has_threads = true;
            waiting = self.set.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn again(outcome: &Result<()>) -> Result<()> {
    outcome.as_ref().map_err(Error::again).copied()
}

/// Counts one of several ends; the last one sets the whole.
fn count_down(rest: &Mutex<Option<(Completer, usize)>>, parts: &[Completion]) {
    let mut state = rest.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, count)) = &mut *state {
        *count -= 1;
        if *count > 0 {
            return;
        }
    }
    let whole = state.take();
    drop(state);
    if let Some((completer, _)) = whole {
        let failure = parts.iter().find_map(|part| part.outcome()?.err());
        completer.set(failure.map_or(Ok(()), Err));
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome() {
            None => f.write_str("Completion(pending)"),
            Some(Ok(())) => f.write_str("Completion(done)"),
            Some(Err(error)) => write!(f, "Completion({error})"),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.outcome.get())
    }
}
