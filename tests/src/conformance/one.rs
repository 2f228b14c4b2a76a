//! Execution of one case on its own thread, so that hangs and panics are findings.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use xla::PlatformRegistry;

use super::case::{Case, Check, Notes, Stop, Subject};

/// Evaluation of deep programs in a debug build needs more than the default stack.
const STACK: usize = 16 << 20;

/// Result of a case, before expected failures are applied.
pub(super) type Raw = (Arc<Case>, Check, Notes, Duration);

/// Runs one case in this process, and waits for it at most for `patience`.
pub(super) fn one(platform: &str, registry: &PlatformRegistry, case: &Arc<Case>, patience: Duration) -> Raw {
    let started = Instant::now();
    let (sender, outcome) = channel();
    let (work, registry, name) = (case.clone(), registry.clone(), platform.to_string());
    let notes = Arc::new(Mutex::new(Notes::default()));
    let written = notes.clone();
    let run = move || {
        let mut notes = Notes::default();
        let check = || (work.work)(&Subject::new(&registry, &name)?, &mut notes);
        let check = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| Err(Stop::Failed(said(&*panic))));
        *written.lock().unwrap_or_else(PoisonError::into_inner) = notes;
        // If the case exceeded its time limit, the receiver is gone.
        let _ = sender.send(check);
    };
    let spawned = std::thread::Builder::new().name(case.id.clone()).stack_size(STACK).spawn(run);
    let check = match spawned {
        Err(error) => Err(Stop::Failed(format!("no thread could be started: {error}"))),
        Ok(_) => match outcome.recv_timeout(patience) {
            Ok(check) => check,
            Err(RecvTimeoutError::Timeout) => Err(not_ended(patience)),
            Err(RecvTimeoutError::Disconnected) => Err(Stop::Failed("its thread died".to_string())),
        },
    };
    let notes = std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner));
    (case.clone(), check, notes, started.elapsed())
}

/// Returns the failure of a case that exceeded its time limit.
pub(super) fn not_ended(patience: Duration) -> Stop {
    Stop::Hung(format!("it has not ended after {} s", patience.as_secs_f64()))
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("it panics: {}", text.unwrap_or("without a message"))
}
