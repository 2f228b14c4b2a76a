//! Injected failures of kernels, copies and allocations, if the device supports fault injection.

use xla::{Buffer, Error, Literal, Result};
use xla_service::{Fault, FaultInjection, StreamExecutor};

use super::samples::{Ready, Sample};
use crate::conformance::case::{Case, Check, Level, Stop, Subject, ensure};
use crate::conformance::launch;
use crate::conformance::levels::Sizes;
use crate::conformance::levels::support::{resting, settles};

/// Number of positions in a part of a run at which a failure is injected.
const PLACES: u64 = 12;

/// Part of a run. An error must name the part whose work failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPart {
    /// Transfer of the arguments to the device.
    Arguments,
    /// Execution of the program.
    Program,
    /// Transfer of the results to the host.
    Results,
}

/// Kind of fault, its name, and the parts where it can occur.
type Kind = (Fault, &'static str, &'static [RunPart]);

const KINDS: [Kind; 3] = [
    (Fault::Kernel, "faulting-kernel", &[RunPart::Program]),
    (Fault::Copy, "faulting-copy", &[RunPart::Arguments, RunPart::Program, RunPart::Results]),
    (Fault::Allocation, "faulting-allocation", &[RunPart::Arguments, RunPart::Program]),
];

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let of_kind = |(fault, name, parts): Kind| {
        Sample::all(sizes).into_iter().map(move |sample| {
            let name = format!("{name}/{}", sample.name());
            Case::new(Level::Resilience, name, move |subject| at_each_place(subject, &sample, fault, parts)).alone()
        })
    };
    KINDS.into_iter().flat_map(of_kind).collect()
}

fn at_each_place(subject: &Subject, sample: &Sample, fault: Fault, parts: &[RunPart]) -> Check {
    let executor = subject.executor()?;
    let Some(faults) = executor.fault_injection() else {
        return Err(Stop::Skipped("the device cannot fail on request".to_string()));
    };
    if let Err(Error::Unimplemented(why)) = faults.inject(fault, 0) {
        return Err(Stop::Skipped(why.to_string()));
    }
    faults.clear();
    let before = resting(&*executor);
    let tried = parts_of(subject, sample, fault, parts, &*executor, faults);
    faults.clear();
    tried?;
    settles(&*executor, before)
}

fn parts_of(
    subject: &Subject,
    sample: &Sample,
    fault: Fault,
    parts: &[RunPart],
    executor: &dyn StreamExecutor,
    faults: &dyn FaultInjection,
) -> Check {
    let ready = sample.load(&subject.client()?)?;
    ready.works()?;
    let before = resting(executor);
    let mut errors = 0;
    for &part in parts {
        for skip in 0..PLACES {
            let at = |stop: Stop| stop.when(format_args!("{part:?}, after {skip} that went well"));
            let outcome = run(&ready, part, faults, &|| faults.inject(fault, skip));
            faults.clear();
            let failed = outcome.is_err();
            match outcome {
                Ok(value) => ready.judge(&value).map_err(at)?,
                Err(error) => told(subject.name(), &ready, fault, part, &error).map_err(at)?,
            }
            settles(executor, before).map_err(at)?;
            ready.works().map_err(at)?;
            if !failed {
                // There are no further positions, or nothing depends on this one.
                break;
            }
            errors += 1;
        }
    }
    // Arguments and results always need copies and memory; whether kernels run depends on the program.
    ensure!(errors > 0 || fault == Fault::Kernel, "each {fault:?} was made to fail in turn, and no run failed");
    Ok(())
}

/// Runs the program part by part, each completed before the next one starts. Faults are injected in one part.
fn run(ready: &Ready, part: RunPart, faults: &dyn FaultInjection, inject: &dyn Fn() -> Result<()>) -> Result<Literal> {
    let begin = |begins: RunPart| {
        faults.clear();
        if begins == part { inject() } else { Ok(()) }
    };
    let compiled = ready.compiled();
    begin(RunPart::Arguments)?;
    let arguments = launch::buffers(compiled, ready.arguments())?;
    arguments.iter().try_for_each(Buffer::wait)?;
    begin(RunPart::Program)?;
    let results = launch::launch(compiled, &arguments, &launch::keeping(compiled))?;
    results.iter().try_for_each(Buffer::wait)?;
    begin(RunPart::Results)?;
    launch::read(&results)
}

/// Checks that the error names the platform and the failed part: the thunk with its instruction, or the array in
/// transfer.
fn told(platform: &str, ready: &Ready, fault: Fault, part: RunPart, error: &Error) -> Check {
    let message = error.to_string();
    ensure!(!message.contains("panicked"), "{message}");
    ensure!(message.contains(&format!("platform {platform}")), "the error does not name the platform: {message}");
    let arguments = ready.compiled().signature().arguments();
    match part {
        RunPart::Arguments => {
            let named = arguments.iter().enumerate().any(|(i, leaf)| message.contains(&leaf.describe(i)));
            ensure!(named, "the error does not name the argument: {message}");
        }
        RunPart::Program if fault != Fault::Allocation => {
            let Some(sequence) = ready.compiled().thunks() else { return Ok(()) };
            // Arguments that are written are copied before the first thunk, and results that are shared after the last
            // one.
            let named = sequence.walk().any(|thunk| message.contains(&thunk.place()))
                || (fault == Fault::Copy && message.contains("a copy of "));
            ensure!(named, "the error names no thunk with its instruction: {message}");
        }
        // The purpose of allocations is checked by the cases of `allocations`.
        RunPart::Program => {}
        RunPart::Results => {
            ensure!(message.contains("an array of "), "the error does not name the array: {message}");
        }
    }
    if fault == Fault::Allocation {
        ensure!(matches!(error, Error::ResourceExhausted(_)), "an allocation must be ResourceExhausted: {error:?}");
    }
    Ok(())
}
