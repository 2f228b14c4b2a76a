//! Out of memory at each allocation of a run in turn.

use xla::{Client, CompilationCache, Error};

use super::samples::{Ready, Sample};
use crate::conformance::case::{Case, Check, Level, Stop, Subject, ensure};
use crate::conformance::faulty::{FaultyPlatform, MESSAGE};
use crate::conformance::levels::Sizes;
use crate::conformance::levels::support::{resting, settles};

/// Maximum number of allocations of a program that are made to fail: the first ones and the last ones.
const MOST: u64 = 40;

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let case = |sample: Sample| {
        let name = format!("out-of-memory/{}", sample.name());
        Case::new(Level::Resilience, name, move |subject| each_in_turn(subject, &sample)).alone()
    };
    Sample::all(sizes).into_iter().map(case).collect()
}

fn each_in_turn(subject: &Subject, sample: &Sample) -> Check {
    let faulty = FaultyPlatform::new(subject.platform().clone())?;
    let mut registry = subject.registry().clone();
    registry.register(faulty.clone());
    let client = || Client::for_device(&registry, subject.name(), 0, CompilationCache::new(0).into());
    let executor = subject.executor()?;
    let before = executor.memory_stats().bytes_in_use;
    let (count, loaded) = {
        let ready = sample.load(&client()?)?;
        let from = faulty.allocations();
        ready.works()?;
        (faulty.allocations() - from, resting(&*executor))
    };
    settles(&*executor, before)?;
    ensure!(count > 0, "it allocates nothing through its executor");
    for number in (0..count).filter(|number| number * 2 < MOST || (count - number) * 2 <= MOST) {
        let place = |stop: Stop| stop.when(format_args!("allocation {number} of {count}"));
        let ready = sample.load(&client()?).map_err(place)?;
        one(subject, &ready, &faulty, number).map_err(place)?;
        // The program keeps an equal amount of memory (uploaded constants and the like) as without a failure.
        settles(&*executor, loaded).map_err(place)?;
        drop(ready);
        settles(&*executor, before).map_err(place)?;
    }
    Ok(())
}

/// Makes one allocation fail, then runs the program again on the device.
fn one(subject: &Subject, ready: &Ready, faulty: &FaultyPlatform, number: u64) -> Check {
    faulty.fail_after(number);
    let outcome = ready.run();
    ensure!(!faulty.relent(), "it allocates less than the first time");
    match outcome {
        Ok(_) => ensure!(false, "the error was lost: the run gave values"),
        Err(Error::ResourceExhausted(detail)) => names_what(subject.name(), &detail.to_string())?,
        Err(error) => ensure!(false, "it must be ResourceExhausted: {error:?}"),
    }
    ready.works().map_err(|stop| stop.when("the next execution"))
}

/// Checks that the message names the platform and the purpose of the memory, followed by the allocator's message.
fn names_what(platform: &str, message: &str) -> Check {
    ensure!(message.contains(&format!("platform {platform}")), "the error does not name the platform: {message}");
    let front = message.split("no memory for").next().unwrap_or_default().trim_end();
    let purpose = front.split_once(&format!("platform {platform}")).map_or("", |(_, rest)| rest);
    let tells = purpose.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    ensure!(tells, "the error does not tell what the memory was for: {message}");
    ensure!(message.contains(MESSAGE), "the error does not say what the device said: {message}");
    Ok(())
}
