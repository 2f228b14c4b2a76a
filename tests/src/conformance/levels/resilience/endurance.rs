//! Thousands of executions, compilations and clients without growth of memory.

use std::time::{Duration, Instant};

use xla_service::StreamExecutor;

use super::samples::{Ready, Sample};
use crate::conformance::case::{Case, Check, Level, Subject, ensure};
use crate::conformance::launch;
use crate::conformance::levels::Sizes;
use crate::conformance::levels::support::{resting, settles};

/// Number of executions after which one-time initialisation is complete.
const WARM: usize = 10;
/// Number of executions of a program between checks of the memory.
const ROW: usize = 20;
/// Time limit of the executions; a leak shows in any number of them.
const LONG: Duration = Duration::from_secs(30);

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let (executions, compilations) = if sizes.quick { (100, 2) } else { (3000, 20) };
    let case = |name: &str, work: fn(&Subject, &Sample, usize) -> Check, count: usize, sample: Sample| {
        let name = format!("endurance/{name}/{}", sample.name());
        Case::new(Level::Resilience, name, move |subject| work(subject, &sample, count)).alone()
    };
    let mut cases = Vec::new();
    for sample in Sample::all(sizes) {
        // Models are slow, and a leak occurs in each execution.
        let executions = if matches!(sample, Sample::Model(_)) { executions / 50 } else { executions };
        cases.push(case("executions", executed, executions, sample.clone()));
        cases.push(case("compilations", compiled, compilations, sample));
    }
    cases
}

fn executed(subject: &Subject, sample: &Sample, count: usize) -> Check {
    let executor = subject.executor()?;
    let before = resting(&*executor);
    let ready = sample.load(&subject.client()?)?;
    for _ in 0..WARM {
        ready.run()?;
    }
    let first = ready.run()?;
    ready.judge(&first)?;
    rows(&ready, &*executor, count)?;
    ensure!(ready.run()? == first, "after {count} executions it returns other bits");
    drop(ready);
    settles(&*executor, before)
}

/// Executes in sequence; after every `ROW` executions all memory must have been freed. Slow devices stop at the time
/// limit.
fn rows(ready: &Ready, executor: &dyn StreamExecutor, count: usize) -> Check {
    let options = launch::keeping(ready.compiled());
    let shared = launch::buffers(ready.compiled(), ready.arguments())?;
    let warm = resting(executor);
    let start = Instant::now();
    for _ in 0..count.div_ceil(ROW) {
        for _ in 0..ROW.min(count) {
            if launch::required(ready.compiled()).is_empty() {
                launch::launch(ready.compiled(), &shared, &options)?;
            } else {
                ready.run()?;
            }
        }
        // This run follows all launches, and reading its results waits for them.
        ready.run()?;
        settles(executor, warm)?;
        if start.elapsed() > LONG {
            break;
        }
    }
    Ok(())
}

fn compiled(subject: &Subject, sample: &Sample, count: usize) -> Check {
    let executor = subject.executor()?;
    let before = resting(&*executor);
    for _ in 0..count {
        let ready = sample.load(&subject.client()?)?;
        ready.works()?;
        drop(ready);
        settles(&*executor, before)?;
    }
    Ok(())
}
