//! Thousands of executions, compilations and clients without growth.

use std::time::{Duration, Instant};

use xla_service::StreamExecutor;

use super::samples::{Ready, Sample};
use crate::conformance::case::{Case, Check, Level, Subject, ensure};
use crate::conformance::launch;
use crate::conformance::levels::Sizes;
use crate::conformance::levels::support::{resting, settles};

/// Executions after which everything that is made once has been made.
const WARM: usize = 10;
/// Executions of one program after which the memory is looked at.
const ROW: usize = 20;
/// After this time there are enough executions: what leaks, has leaked.
const LONG: Duration = Duration::from_secs(30);

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let (executions, compilations) = if sizes.quick { (100, 2) } else { (3000, 20) };
    let case = |name: &str, work: fn(&Subject, &Sample, usize) -> Check, count: usize, sample: Sample| {
        let name = format!("endurance/{name}/{}", sample.name());
        Case::new(Level::Resilience, name, move |subject| work(subject, &sample, count)).alone()
    };
    let mut cases = Vec::new();
    for sample in Sample::all(sizes) {
        // Models take their time; what leaks, leaks each time.
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

/// Executions one after the other; after every `ROW` of them everything must have come back. A slow device is spared
/// the rest.
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
        // This run comes after all launches, and is read: it waits for them.
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
