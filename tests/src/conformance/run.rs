//! Execution of cases, several of them concurrently, and collection of their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use xla::{Error, PlatformRegistry, Result};

use super::case::{Case, Level, Stop};
use super::one::{Raw, one};
use super::pseudo;
use super::report::{CaseResult, Outcome, Report};
use super::workers::Worker;
use super::{Observer, Suite};

pub(super) fn run(suite: &Suite, observer: &mut dyn Observer) -> Result<Report> {
    let started = Instant::now();
    let registry = pseudo::with_pseudo_platforms(&suite.registry, &suite.platform)?;
    let (listed, cases): (Vec<String>, Vec<Arc<Case>>) = {
        let all = suite.listed();
        let ids = all.iter().map(|case| case.id.clone()).collect();
        (ids, all.into_iter().filter(|case| suite.selects(&case.id)).map(Arc::new).collect())
    };
    if cases.is_empty() && !suite.filter.is_empty() {
        let example = "cases are called like 5/idioms/softmax/f32/1x1000";
        let message = format!("no case of these levels has `{}` in its identifier; {example}", suite.filter);
        return Err(Error::invalid_argument(message));
    }
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
                let mut worker = suite.workers.as_ref().map(|command| Worker::new(command, suite.patience));
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = match &mut worker {
                        Some(worker) => worker.run(case),
                        None => one(&suite.platform, registry, case, suite.patience),
                    };
                    if sender.send(result).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        results.into_iter().for_each(add);
    });
}

impl Report {
    /// Adds the result of a case, and notifies the observer.
    fn add(&mut self, suite: &Suite, (case, check, notes, time): Raw, observer: &mut dyn Observer) {
        let line = suite.expected.line(&case.id);
        let outcome = match (check, line) {
            (Ok(()), Some(line)) if line.prefix().is_none() => Outcome::BeginsToPass(line.reason.clone()),
            (Ok(()), _) => Outcome::Passed,
            (Err(Stop::Skipped(why)), _) => Outcome::Skipped(why),
            (Err(Stop::Failed(message) | Stop::Lost(message) | Stop::Hung(message)), Some(line)) => {
                Outcome::Expected { message, reason: line.reason.clone() }
            }
            (Err(Stop::Failed(message)), None) => Outcome::Failed(message),
            (Err(Stop::Lost(message)), None) => Outcome::Lost(message),
            (Err(Stop::Hung(message)), None) => Outcome::Hung(message),
        };
        let result = CaseResult { id: case.id.clone(), level: case.level, outcome, seconds: time.as_secs_f64() };
        observer.done(&result);
        self.learn(&result, case.operation, notes);
        self.results.push(result);
    }
}
