//! Runs of programs on a device, on the calling thread or as jobs of a worker thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::ops::RunContext;
use xla_hlo::{Error, Result, ResultExt};

use super::device::{Device, protect};
use super::inputs::Inputs;
use super::loaded::LoadedExecutable;
use super::member::Member;
use super::options::ExecuteOptions;
use super::value::{Sender, Value, Work};
use crate::cancel::CancelToken;
use crate::executable::ExecutionContext;
use crate::executor::{DeviceMemory, Event, ProfilerRange};

/// Options of a run on one device.
pub(super) struct RunOptions {
    /// Token that cancels the run, if it can be cancelled.
    pub cancel: Option<CancelToken>,
    /// Values for the handlers of custom calls.
    pub context: Option<Arc<RunContext>>,
    /// Place of the run in a launch over several devices.
    pub member: Option<Member>,
}

impl RunOptions {
    /// Returns the options of a run that is independent of other devices.
    pub fn of(options: &ExecuteOptions) -> RunOptions {
        RunOptions { cancel: options.cancel.clone(), context: options.context.clone(), member: None }
    }
}

/// Launch that a worker thread of the client executes.
pub(super) struct Job {
    pub program: LoadedExecutable,
    pub device: Device,
    pub inputs: Inputs,
    pub targets: Vec<Arc<Value>>,
    pub sender: Sender,
    pub options: RunOptions,
}

impl Job {
    /// Schedules the job to run when its arguments are available and all work that must precede it is sent.
    pub fn schedule(self, work: &Work) {
        let before = self.before(work);
        let workers = self.device.client().0.workers.clone();
        when_all_sent(before, move || workers.spawn(Box::new(move || self.run())));
    }

    /// Returns the unsent work that must precede the job. Records `work`, the job's own, as the last one with side
    /// effects of its device, if it has any.
    pub fn before(&self, work: &Work) -> Vec<Work> {
        let mut before: Vec<Work> = Vec::new();
        if self.program.is_ordered() {
            let mut last = self.device.state().effects.lock().unwrap_or_else(PoisonError::into_inner);
            before.push(std::mem::replace(&mut last, work.clone()));
        }
        before.extend(self.inputs.works().cloned());
        before.retain(|work| !work.is_sent());
        before
    }

    /// Runs the program and completes its results.
    pub fn run(self) {
        let Job { program, device, inputs, targets, sender, options } = self;
        let mut outcome = protect(|| run(&program, &device, inputs, &options));
        if let Some(member) = &options.member {
            outcome = member.end(outcome);
        }
        let event = outcome.map(|(memories, event)| {
            targets.iter().zip(memories).for_each(|(target, memory)| target.fill(Arc::new(memory)));
            event
        });
        drop((targets, options));
        sender.set(event);
    }
}

/// Calls `then` when all of the work is sent or has failed: immediately, or on a thread that sends the last of it.
pub(super) fn when_all_sent(before: Vec<Work>, then: impl FnOnce() + Send + 'static) {
    // One extra count, released after all dependencies have been registered.
    let missing = Arc::new((AtomicUsize::new(before.len() + 1), Mutex::new(Some(then))));
    let arrive = move || {
        if missing.0.fetch_sub(1, Ordering::AcqRel) == 1 {
            let then = missing.1.lock().unwrap_or_else(PoisonError::into_inner).take();
            then.into_iter().for_each(|then| then());
        }
    };
    for work in before {
        let arrive = arrive.clone();
        work.when_sent(move |_| arrive());
    }
    arrive();
}

/// Waits for the arguments and runs the program; returns the results and the event of their completion.
pub(super) fn run(
    program: &LoadedExecutable,
    device: &Device,
    inputs: Inputs,
    options: &RunOptions,
) -> Result<(Vec<DeviceMemory>, Event)> {
    let (client, state, executable) = (&device.client().0, device.state(), program.executable());
    let RunOptions { cancel, context: values, member } = options;
    let _span = tracing::debug_span!("execute", module = program.name()).entered();
    let _range = ProfilerRange::open(&*state.stream, &|| program.name().to_string());
    let arguments = inputs.read(device)?;
    let place = || match member {
        Some(member) => member.describe().to_string(),
        None => format!("platform {}", client.platform),
    };
    state.stream.annotate(&place);
    let calls = program.custom_calls(values.as_ref());
    let context = ExecutionContext {
        cancel: cancel.as_ref().unwrap_or(&client.never),
        run: values.as_ref().map_or(RunContext::nothing(), |values| &**values),
        logical_device: member.as_ref().map(Member::logical_device),
        ..device.context(calls.as_ref())
    };
    let results = context.cancel.check().and_then(|()| {
        context.custom_calls.begin_run(executable.module())?;
        executable.execute(&context, arguments)
    });
    state.stream.annotate(&place);
    if results.is_err() {
        // Work that the failed run left in the stream fails too. Consume its error here, before the next program's
        // event.
        drop(state.stream.record_event());
    }
    // The end of a member names the platform and the device in all of its errors.
    let results = if member.is_some() { results? } else { results.context(place)? };
    let expected = executable.signature().outputs().len();
    if results.len() != expected {
        return Err(Error::internal(format!("the backend returned {} results instead of {expected}", results.len())));
    }
    Ok((results, state.stream.record_event()?))
}
