//! Completions: outcome of asynchronous work, with waiting and callbacks.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use xla_hlo::{Error, Result};

use crate::forked;
use crate::workers::{blocking, host_call};

/// Completion of work: pending, done, or failed with an error. Clones are handles to the same completion.
///
/// (PJRT: `PJRT_Event`.) A completion that is done from the start allocates nothing.
#[derive(Clone, Default)]
pub struct Completion(Option<Arc<Shared>>);

/// Handle that completes a [`Completion`], once. If it is dropped unused, the outcome is [`Error::Cancelled`].
#[derive(Debug)]
pub struct Completer(Option<Arc<Shared>>);

/// Callback that receives the outcome, once.
type Callback = Box<dyn FnOnce(Result<()>) + Send>;

#[derive(Default)]
struct Shared {
    outcome: OnceLock<Result<()>>,
    /// Waiters. The outcome is set while this lock is held.
    waiting: Mutex<Waiting>,
    set: Condvar,
}

/// Waiters for an outcome.
#[derive(Default)]
struct Waiting {
    callbacks: Vec<Callback>,
    /// Whether threads sleep on the condition variable. Otherwise waking them, a system call, is skipped.
    has_threads: bool,
}

impl Completion {
    /// Returns the completion of work that is done.
    pub fn done() -> Completion {
        Completion(None)
    }

    /// Returns the completion of work that has failed.
    pub fn failed(error: Error) -> Completion {
        let (completion, completer) = Completion::pending();
        completer.set(Err(error));
        completion
    }

    /// Returns the completion of work with this outcome.
    pub fn of(outcome: Result<()>) -> Completion {
        outcome.map_or_else(Completion::failed, |()| Completion::done())
    }

    /// Returns the completion of pending work, and the completer that sets its outcome.
    pub fn pending() -> (Completion, Completer) {
        let shared = Arc::new(Shared::default());
        (Completion(Some(shared.clone())), Completer(Some(shared)))
    }

    /// Combines completions: done when all have ended. It fails with the error of the first part, in iteration order,
    /// that failed.
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

    /// Returns a completion with the same outcome that ends no earlier than `other`, even if `other` fails.
    #[must_use]
    pub fn not_before(self, other: &Completion) -> Completion {
        if other.is_ready() {
            return self;
        }
        let (completion, completer) = Completion::pending();
        other.then(move |_| self.then(move |outcome| completer.set(outcome)));
        completion
    }

    /// Whether the work has ended, successfully or not.
    pub fn is_ready(&self) -> bool {
        self.outcome().is_some()
    }

    /// Whether the work is done and has not failed.
    pub fn is_done(&self) -> bool {
        matches!(self.outcome(), Some(Ok(())))
    }

    /// Returns the outcome if the work has ended.
    pub fn outcome(&self) -> Option<Result<()>> {
        match &self.0 {
            None => Some(Ok(())),
            Some(shared) => shared.outcome.get().map(again),
        }
    }

    /// Waits until the work ends.
    pub fn wait(&self) -> Result<()> {
        let Some(shared) = &self.0 else { return Ok(()) };
        if let Some(outcome) = shared.outcome.get() {
            return again(outcome);
        }
        forked::check()?;
        blocking(|| shared.wait())
    }

    /// Calls `callback` with the outcome: immediately on this thread if the work has ended, otherwise on the thread
    /// that ends it. The callback may call any function of this crate; no lock is held during the call.
    pub fn on_ready(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        // The panic hook has already reported a panic; it must not unwind into the thread that ends the work.
        self.then(move |outcome| drop(catch_unwind(AssertUnwindSafe(|| host_call(|| callback(outcome))))));
    }

    /// Like [`Completion::on_ready`], for callbacks of this crate, which never wait, panic or call user code.
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
    /// Ends the work with an outcome.
    pub fn set(mut self, outcome: Result<()>) {
        if let Some(shared) = self.0.take() {
            shared.set(outcome);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.set(Err(Error::cancelled("the work was abandoned: its completer was dropped")));
        }
    }
}

impl Shared {
    fn set(&self, outcome: Result<()>) {
        let mut waiting = self.waiting();
        // The completer is the only writer and sets the outcome once.
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

/// Counts the end of one part; the last one completes the whole.
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
