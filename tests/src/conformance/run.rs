//! Runs cases: several at the same time, each on a thread of its own, so that one that hangs or panics is a finding.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use xla::{PlatformRegistry, Result};

use super::case::{Case, Check, Level, Notes, Stop, Subject};
use super::pseudo;
use super::report::{CaseResult, Outcome, Report};
use super::{Observer, Suite};

/// Evaluating deep programs in a debug build takes more than the usual stack.
const STACK: usize = 16 << 20;

/// Result of a case, before the expected failures are looked up.
type Raw = (Arc<Case>, Check, Notes, Duration);

pub(super) fn run(suite: &Suite, observer: &mut dyn Observer) -> Result<Report> {
    let started = Instant::now();
    let registry = pseudo::with_pseudo_platforms(&suite.registry, &suite.platform)?;
    let (listed, cases): (Vec<String>, Vec<Arc<Case>>) = {
        let all = suite.listed();
        let ids = all.iter().map(|case| case.id.clone()).collect();
        (ids, all.into_iter().filter(|case| case.id.contains(&suite.filter)).map(Arc::new).collect())
    };
    observer.begin(cases.len());
    let mut report = Report::new(&suite.platform);
    let (first, rest): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.level == Level::Registration);
    run_all(suite, &registry, first, &mut |raw| report.add(suite, raw, observer));
    match registry.get(&suite.platform)?.check() {
        Err(why) => report.complain(format!("nothing else was tried, since the platform cannot be used here: {why}")),
        Ok(()) => {
            let (alone, together): (Vec<_>, Vec<_>) = rest.into_iter().partition(|case| case.alone);
            run_all(suite, &registry, together, &mut |raw| report.add(suite, raw, observer));
            let one_by_one = Some(1);
            run_with_jobs(suite, &registry, alone, one_by_one, &mut |raw| report.add(suite, raw, observer));
        }
    }
    report.finish(suite, &listed, started.elapsed());
    Ok(report)
}

fn run_all(suite: &Suite, registry: &PlatformRegistry, cases: Vec<Arc<Case>>, add: &mut dyn FnMut(Raw)) {
    run_with_jobs(suite, registry, cases, None, add);
}

fn run_with_jobs(
    suite: &Suite,
    registry: &PlatformRegistry,
    cases: Vec<Arc<Case>>,
    jobs: Option<usize>,
    add: &mut dyn FnMut(Raw),
) {
    let next = AtomicUsize::new(0);
    let (sender, results) = channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or(suite.jobs).min(cases.len()) {
            let (sender, next, cases) = (sender.clone(), &next, &cases);
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send(one(suite, registry, case)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        results.into_iter().for_each(add);
    });
}

/// Runs one case, but waits for it no longer than the suite's patience.
fn one(suite: &Suite, registry: &PlatformRegistry, case: &Arc<Case>) -> Raw {
    let started = Instant::now();
    let (sender, outcome) = channel();
    let (work, registry, name) = (case.clone(), registry.clone(), suite.platform.clone());
    let notes = Arc::new(Mutex::new(Notes::default()));
    let written = notes.clone();
    let run = move || {
        let mut notes = Notes::default();
        let check = || (work.work)(&Subject::new(&registry, &name)?, &mut notes);
        let check = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| Err(Stop::Failed(said(&*panic))));
        *written.lock().unwrap_or_else(PoisonError::into_inner) = notes;
        // Nobody listens any more where the case took too long.
        let _ = sender.send(check);
    };
    let spawned = std::thread::Builder::new().name(case.id.clone()).stack_size(STACK).spawn(run);
    let check = match spawned {
        Err(error) => Err(Stop::Failed(format!("no thread could be started: {error}"))),
        Ok(_) => match outcome.recv_timeout(suite.patience) {
            Ok(check) => check,
            Err(RecvTimeoutError::Timeout) => {
                Err(Stop::Failed(format!("it has not ended after {} s", suite.patience.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(Stop::Failed("its thread died".to_string())),
        },
    };
    let notes = std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner));
    (case.clone(), check, notes, started.elapsed())
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("it panics: {}", text.unwrap_or("without a message"))
}

impl Report {
    /// Takes what came of a case in, and tells the observer.
    fn add(&mut self, suite: &Suite, (case, check, notes, time): Raw, observer: &mut dyn Observer) {
        let line = suite.expected.line(&case.id);
        let outcome = match (check, line) {
            (Ok(()), Some(line)) if line.prefix().is_none() => Outcome::BeginsToPass(line.reason.clone()),
            (Ok(()), _) => Outcome::Passed,
            (Err(Stop::Skipped(why)), _) => Outcome::Skipped(why),
            (Err(Stop::Failed(message)), Some(line)) => Outcome::Expected { message, reason: line.reason.clone() },
            (Err(Stop::Failed(message)), None) => Outcome::Failed(message),
        };
        let result = CaseResult { id: case.id.clone(), level: case.level, outcome, seconds: time.as_secs_f64() };
        observer.done(&result);
        self.learn(&result, case.operation, notes);
        self.results.push(result);
    }
}
