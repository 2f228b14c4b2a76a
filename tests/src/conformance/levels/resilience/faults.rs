//! Kernels and copies that fail on request, where the device can do that.

use xla::Error;
use xla_service::{Fault, FaultInjection, StreamExecutor};

use super::samples::{Ready, Sample};
use crate::conformance::case::{Case, Check, Level, Stop, Subject, ensure};
use crate::conformance::levels::Sizes;
use crate::conformance::levels::memory::{resting, settles};

/// Places of a program at which it is made to fail: the first so many.
const PLACES: u64 = 12;

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let kinds = [
        (Fault::Kernel, "faulting-kernel"),
        (Fault::Copy, "faulting-copy"),
        (Fault::Allocation, "faulting-allocation"),
    ];
    let of_kind = |(fault, name): (Fault, &'static str)| {
        Sample::all(sizes).into_iter().map(move |sample| {
            let name = format!("{name}/{}", sample.name());
            Case::new(Level::Resilience, name, move |subject| at_each_place(subject, &sample, fault)).alone()
        })
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

fn at_each_place(subject: &Subject, sample: &Sample, fault: Fault) -> Check {
    let executor = subject.executor()?;
    let Some(faults) = executor.fault_injection() else {
        return Err(Stop::Skipped("the device cannot fail on request".to_string()));
    };
    let before = resting(&*executor);
    let tried = places(subject, sample, fault, &*executor, faults);
    faults.clear();
    tried?;
    settles(&*executor, before)
}

fn places(
    subject: &Subject,
    sample: &Sample,
    fault: Fault,
    executor: &dyn StreamExecutor,
    faults: &dyn FaultInjection,
) -> Check {
    let ready = sample.load(&subject.client()?)?;
    ready.works()?;
    let before = resting(executor);
    let mut errors = 0;
    for skip in 0..PLACES {
        let at = |stop: Stop| stop.when(format_args!("after {skip} that went well"));
        match faults.inject(fault, skip) {
            Err(Error::Unimplemented(why)) => return Err(Stop::Skipped(why.to_string())),
            injected => injected?,
        }
        let outcome = ready.run();
        faults.clear();
        match outcome {
            // There are no more such places, or nothing depends on this one.
            Ok(value) => ready.judge(&value).map_err(at)?,
            Err(error) => {
                told(subject.name(), &ready, fault, &error).map_err(at)?;
                errors += 1;
            }
        }
        settles(executor, before).map_err(at)?;
        ready.works().map_err(at)?;
    }
    // Results come by copies, in memory; whether kernels run depends on the program.
    ensure!(errors > 0 || fault == Fault::Kernel, "each {fault:?} was made to fail in turn, and no run failed");
    Ok(())
}

/// The error names the platform; that of a kernel the thunk and its instruction too.
fn told(platform: &str, ready: &Ready, fault: Fault, error: &Error) -> Check {
    let message = error.to_string();
    ensure!(!message.contains("panicked"), "{message}");
    ensure!(message.contains(&format!("platform {platform}")), "the error does not name the platform: {message}");
    if fault == Fault::Allocation {
        ensure!(matches!(error, Error::ResourceExhausted(_)), "an allocation must be ResourceExhausted: {error:?}");
    }
    let Some(sequence) = ready.compiled().thunks().filter(|_| fault == Fault::Kernel) else { return Ok(()) };
    let named = sequence.walk().any(|thunk| message.contains(&thunk.place()));
    ensure!(named, "the error names no thunk with its instruction: {message}");
    Ok(())
}
