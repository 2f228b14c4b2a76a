//! Launches: take the arguments of each device, return results and completion for each device.

use std::sync::{Arc, PoisonError};

use smallvec::SmallVec;
use xla_hlo::{ArrayShape, Dynamism, ElementType, Error, Result, ResultExt};

use super::buffer::Buffer;
use super::completion::Completion;
use super::device::{Device, protect};
use super::inputs::{Input, Inputs, give_back};
use super::job::{Job, RunOptions, run};
use super::loaded::{Arrangement, LoadedExecutable};
use super::options::{Dispatch, Donate, ExecuteOptions};
use super::sizes::RunSizes;
use super::value::{Value, Work};
use crate::forked;
use crate::signature::{Donation, ResultLeaf};
use crate::workers::is_host_call;

/// Results of a launch on one device.
#[derive(Debug)]
pub struct DeviceResults {
    /// Result buffers, one for each result of the signature.
    pub buffers: Vec<Buffer>,
    device: Device,
    work: Work,
    /// Whether the calling thread ran the program.
    is_inline: bool,
}

impl DeviceResults {
    /// Returns the completion of the run on this device.
    pub fn completion(&self) -> Completion {
        self.work.completion(&self.device.client().0.workers)
    }

    /// Returns an array with arbitrary contents that becomes ready when the run ends. It represents a token among the
    /// results: launching other programs [after](ExecuteOptions::after) it preserves the order of effects.
    pub fn token(&self) -> Result<Buffer> {
        let shape = self.device.client().0.transfer.device_shape(&ArrayShape::new(ElementType::Pred, []))?;
        let memory = self.device.allocate(&shape)?;
        Ok(Buffer::new(self.device.clone(), Arc::new(shape), Value::new(Arc::new(memory), self.work.clone())))
    }

    /// Returns the results of the same run for another device.
    pub(super) fn for_device(&self, device: Device, buffers: Vec<Buffer>) -> DeviceResults {
        DeviceResults { buffers, device, work: self.work.clone(), is_inline: self.is_inline }
    }

    /// Returns the work of the run.
    pub(super) fn work(&self) -> &Work {
        &self.work
    }

    /// Waits for the run as if the calling thread had executed it.
    pub(super) fn await_inline(&mut self) {
        // An error is reported by `failure`.
        drop(self.work.event());
        self.is_inline = true;
    }

    /// Returns the error of a run on the calling thread. Errors of other runs are reported by their result buffers.
    pub fn failure(&self) -> Option<Error> {
        self.is_inline.then(|| self.work.event().err()).flatten()
    }
}

impl LoadedExecutable {
    /// Launches the program on all of its [devices](LoadedExecutable::devices) in this process. Each device takes
    /// one argument for each argument of the signature, and returns one buffer for each result.
    ///
    /// Arguments may be pending or failed. If a run fails or an argument has failed, the results fail too. Errors of
    /// the call itself: [`Error::InvalidArgument`] for a wrong number of arguments, or for an argument with the wrong
    /// shape, layout or device (the message names the argument and both shapes); [`Error::FailedPrecondition`] for an
    /// argument that was deleted or donated before, or that this call donates and also passes as another argument. A
    /// rejected call donates nothing.
    pub fn launch<'a>(
        &self,
        arguments: &[impl AsRef<[&'a Buffer]>],
        options: &ExecuteOptions,
    ) -> Result<Vec<DeviceResults>> {
        forked::check()?;
        self.launch_checked(arguments, options).inspect_err(|error| self.reject(error))
    }

    /// Rejects a launch whose arguments the caller cannot pass to [`launch`](LoadedExecutable::launch). If the program
    /// has devices in other processes, their launch fails with this error, and the processes agree about later ones.
    pub fn reject(&self, error: &Error) {
        if let Arrangement::PerDevice(program) = self.arrangement() {
            program.reject(self, error);
        }
    }

    fn launch_checked<'a>(
        &self,
        arguments: &[impl AsRef<[&'a Buffer]>],
        options: &ExecuteOptions,
    ) -> Result<Vec<DeviceResults>> {
        let devices = self.device_indices();
        if arguments.len() != devices.len() {
            return Err(self.wrong_count("lists of arguments, one for each device", devices.len(), arguments.len()));
        }
        for (&device, arguments) in devices.iter().zip(arguments) {
            self.check_arguments(device, arguments.as_ref(), options)?;
        }
        let after = options.after.iter().map(|buffer| Ok(buffer.value()?.work().clone()));
        let after = after.collect::<Result<Vec<_>>>().context(|| "a buffer that must be computed before")?;
        let mut taken: SmallVec<[Vec<Input>; 1]> = SmallVec::with_capacity(devices.len());
        for list in arguments {
            match self.take_arguments(list.as_ref(), options) {
                Ok(inputs) => taken.push(inputs),
                Err(error) => {
                    let taken = arguments.iter().zip(taken).flat_map(|(list, inputs)| list.as_ref().iter().zip(inputs));
                    taken.for_each(|(buffer, input)| give_back(buffer, input));
                    return Err(error);
                }
            }
        }
        let inputs = |arguments| Inputs { arguments, after: after.clone() };
        match self.arrangement() {
            Arrangement::Joined(together) => {
                let taken = taken.into_iter().map(|list| list.into_iter().map(Some).collect()).collect();
                together.launch(devices, taken, after, options)
            }
            Arrangement::PerDevice(program) => {
                Ok(program.launch(self, taken.into_iter().map(inputs).collect(), options))
            }
            Arrangement::Independent => {
                let runs = devices.iter().zip(taken);
                Ok(runs.map(|(&device, arguments)| self.launch_on(device, inputs(arguments), options)).collect())
            }
        }
    }

    pub(super) fn launch_on(&self, device: usize, inputs: Inputs, options: &ExecuteOptions) -> DeviceResults {
        let device = self.client().device_at(device);
        let inline = self.is_inline(&device, &inputs, options.dispatch);
        if inline {
            let outcome = protect(|| run(self, &device, inputs, &RunOptions::of(options)));
            return match outcome {
                Ok((memories, event)) => {
                    let work = Work::sent(event);
                    let values = memories.into_iter().map(|memory| Value::new(Arc::new(memory), work.clone()));
                    self.results(device, values, work.clone(), true)
                }
                Err(error) => {
                    let work = Work::failed(error);
                    let values = self.signature().outputs().iter().map(|_| Value::pending(work.clone()));
                    self.results(device, values, work.clone(), true)
                }
            };
        }
        let (job, results) = self.job(device, inputs, RunOptions::of(options));
        job.schedule(&results.work);
        results
    }

    /// Creates the job of a run on a worker thread, and its pending results.
    pub(super) fn job(&self, device: Device, inputs: Inputs, options: RunOptions) -> (Job, DeviceResults) {
        let (work, sender) = Work::pending();
        let targets: Vec<_> = self.signature().outputs().iter().map(|_| Value::pending(work.clone())).collect();
        let results = self.results(device.clone(), targets.iter().cloned(), work, false);
        (Job { program: self.clone(), device, inputs, targets, sender, options }, results)
    }

    /// Whether the calling thread runs the program.
    fn is_inline(&self, device: &Device, inputs: &Inputs, dispatch: Dispatch) -> bool {
        let is_sent = || inputs.works().all(Work::is_sent);
        match dispatch {
            Dispatch::Inline => true,
            Dispatch::Queued => is_host_call(),
            Dispatch::Auto => is_host_call() || is_sent() && self.is_cheap() && !self.is_ordered(),
            Dispatch::WhenReady => {
                // A failed argument makes the results fail, not the call.
                let effects = || device.state().effects.lock().unwrap_or_else(PoisonError::into_inner).is_sent();
                let is_ready = || inputs.are_available() && (!self.is_ordered() || effects());
                is_host_call() || self.device_indices().len() == 1 && is_ready()
            }
        }
    }

    fn results(
        &self,
        device: Device,
        outputs: impl Iterator<Item = Arc<Value>>,
        work: Work,
        is_inline: bool,
    ) -> DeviceResults {
        let signature = self.signature();
        let leaves = signature.results();
        let buffers = match signature.sizes_output() {
            None => {
                let buffer = |(leaf, value): (&ResultLeaf, _)| Buffer::new(device.clone(), leaf.shape.clone(), value);
                leaves.iter().zip(outputs).map(buffer).collect()
            }
            Some(at) => {
                let outputs: Vec<_> = outputs.collect();
                let sizes = RunSizes::of_results(&device, signature, &outputs[at]);
                let buffer = |((leaf, value), sizes): ((&ResultLeaf, _), _)| {
                    Buffer::of_sizes(device.clone(), leaf.shape.clone(), sizes, value)
                };
                leaves.iter().zip(outputs).zip(sizes).map(buffer).collect()
            }
        };
        DeviceResults { buffers, device, work, is_inline }
    }

    pub(super) fn check_arguments(&self, device: usize, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<()> {
        let expected = self.signature().arguments();
        if arguments.len() != expected.len() {
            return Err(self.wrong_count("arguments", expected.len(), arguments.len()));
        }
        if let Donate::These(numbers) = &options.donate
            && let Some(&index) = numbers.iter().find(|&&index| index >= expected.len())
        {
            return Err(self.no_argument(index));
        }
        for (i, (buffer, leaf)) in arguments.iter().zip(expected).enumerate() {
            if !Arc::ptr_eq(&buffer.client().0, &self.client().0) {
                return Err(Error::invalid_argument(format!(
                    "{} belongs to another client (of platform {}); copy it with to_literal and argument_buffer",
                    leaf.describe(i),
                    buffer.client().platform()
                )));
            }
            if buffer.device().index() != device {
                return Err(Error::invalid_argument(format!(
                    "{} of {} must be on device {}, it is on {}",
                    leaf.describe(i),
                    self.name(),
                    self.client().device_at(device).id(),
                    buffer.device().id()
                )));
            }
            if !buffer.has_shape(&leaf.shape) && !self.takes_resized(buffer, &leaf.shape) {
                return Err(Error::invalid_argument(format!(
                    "{} of {} must be {}, it is {}",
                    leaf.describe(i),
                    self.name(),
                    leaf.shape,
                    buffer.shape()
                )));
            }
            if let Donate::These(numbers) = &options.donate
                && leaf.donation == Donation::Required
                && !numbers.contains(&i)
            {
                return Err(Error::failed_precondition(format!(
                    "{} of {} must be donated: a result must alias it",
                    leaf.describe(i),
                    self.name()
                )));
            }
        }
        Ok(())
    }

    /// Whether an argument of dynamic size may have this shape at its actual size.
    fn takes_resized(&self, buffer: &Buffer, shape: &ArrayShape) -> bool {
        let bound = buffer.shape();
        let fits = |d: usize| match bound.dynamism(d) {
            Dynamism::Static => bound.dims()[d] == shape.dims()[d],
            Dynamism::Bounded | Dynamism::Unbounded => shape.dims()[d] <= bound.dims()[d],
        };
        // Shards of multi-device programs are copied without conversion.
        buffer.is_dynamic()
            && self.as_together().is_none()
            && bound.element_type() == shape.element_type()
            && bound.minor_to_major() == shape.minor_to_major()
            && (0..bound.rank()).all(fits)
    }

    /// Takes shares of the argument values; donated values are moved out of their buffers. On an error no buffer is
    /// changed.
    fn take_arguments(&self, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Input>> {
        let leaves = self.signature().arguments();
        // Fast path: most calls donate nothing, so order and roll-back do not matter.
        if !leaves.iter().enumerate().any(|(i, leaf)| options.donate.takes(i, leaf)) {
            let kept = |(i, buffer): (usize, &&Buffer)| match buffer.value() {
                Ok(value) => Ok(Input::new(buffer, value, false, &leaves[i].shape)),
                Err(error) => Err(error.context(leaves[i].describe(i))),
            };
            return arguments.iter().enumerate().map(kept).collect();
        }
        let mut inputs: Vec<Option<Input>> = arguments.iter().map(|_| None).collect();
        // Donations first: a buffer that is donated cannot also be another argument of the same call.
        let turn = |donated: bool| (0..arguments.len()).map(move |i| (i, donated));
        let is_its = |&(i, donated): &(usize, bool)| options.donate.takes(i, &leaves[i]) == donated;
        for (i, donated) in turn(true).chain(turn(false)).filter(is_its) {
            let value = if donated { arguments[i].donate() } else { arguments[i].value() };
            match value {
                Ok(value) => inputs[i] = Some(Input::new(arguments[i], value, donated, &leaves[i].shape)),
                Err(error) => {
                    let taken = arguments.iter().zip(inputs).filter_map(|(buffer, input)| Some((*buffer, input?)));
                    taken.for_each(|(buffer, input)| give_back(buffer, input));
                    return Err(error.context(leaves[i].describe(i)));
                }
            }
        }
        Ok(inputs.into_iter().flatten().collect())
    }
}
