//! Loaded executables: check arguments, launch, return results.

use std::fmt;
use std::sync::Arc;

use xla_hlo::{Error, Literal, Module, Result, ResultExt};

use super::buffer::Buffer;
use super::device::{Client, Device, fits, protect};
use super::slot::Slot;
use crate::cancel::CancelToken;
use crate::executable::{CostAnalysis, Executable, MemoryAnalysis};
use crate::executor::{DeviceMemory, Event};
use crate::signature::{Donation, Signature, ungroup};
use crate::thunks::ThunkSequence;

/// A program, compiled for a client's device. A clone is another handle; programs may be run from many threads at
/// once.
#[derive(Clone)]
pub struct LoadedExecutable {
    client: Client,
    executable: Arc<dyn Executable>,
}

/// Options of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecuteOptions {
    /// Numbers of the arguments to donate: their memory may be reused for results, and their buffers cannot be used
    /// again. An argument that others are still reading is left alone, though its buffer counts as donated.
    pub donate: Vec<usize>,
    /// The thread that runs the program.
    pub dispatch: Dispatch,
    /// By which the run can be asked to stop; [`Error::Cancelled`] is then its error. `None` for a run that nobody
    /// stops.
    pub cancel: Option<CancelToken>,
}

/// The thread that runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// The calling thread sends it to the device. On the host that means: runs it. No other thread is involved.
    #[default]
    Inline,
    /// A thread of the client, in the order of the calls; the call returns at once with pending buffers.
    Queued,
}

impl LoadedExecutable {
    pub(super) fn new(client: Client, executable: Arc<dyn Executable>) -> LoadedExecutable {
        LoadedExecutable { client, executable }
    }

    /// The client it was compiled for.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The module after the compiler's passes.
    pub fn module(&self) -> &Module {
        self.executable.module()
    }

    /// Arguments and results.
    pub fn signature(&self) -> &Signature {
        self.executable.signature()
    }

    /// Memory that one run takes.
    pub fn memory_analysis(&self) -> MemoryAnalysis {
        self.executable.memory_analysis()
    }

    /// Work that one run does.
    pub fn cost_analysis(&self) -> CostAnalysis {
        self.executable.cost_analysis()
    }

    /// The steps it runs in, for reports of native and host execution; `None` for a program that is one whole.
    pub fn thunks(&self) -> Option<&ThunkSequence> {
        self.executable.thunks()
    }

    /// Dumps of the program (thunks, buffers, code), as named texts.
    pub fn dumps(&self) -> Vec<(String, String)> {
        self.executable.dumps()
    }

    /// Writes the program down; [`Client::load`] reads it. [`Error::Unimplemented`] where the platform cannot.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        let serializer = self.executable.serializer();
        protect(|| serializer.ok_or_else(|| self.client.cannot("serialise programs"))?.serialize())
    }

    /// An array on the device in the layout that argument `index` wants.
    pub fn argument_buffer(&self, index: usize, literal: &Literal) -> Result<Buffer> {
        let leaf = self.signature().arguments().get(index).ok_or_else(|| self.no_argument(index))?;
        fits(literal, &leaf.shape).context(|| leaf.describe(index))?;
        self.client.buffer_for(literal, &leaf.shape, &|| format!("{}, {}", leaf.describe(index), leaf.shape))
    }

    /// Runs the program on the calling thread, donating nothing. See [`LoadedExecutable::execute_with`].
    pub fn execute(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>> {
        self.execute_with(arguments, &ExecuteOptions::default())
    }

    /// Runs the program: one argument for each of the signature's, one buffer back for each of its results.
    ///
    /// Arguments may be pending. Errors: [`Error::InvalidArgument`] for a wrong number of arguments, or for an argument
    /// of another shape, layout or client, naming it and both shapes; [`Error::FailedPrecondition`] for a donated one;
    /// the program's own errors, at once for [`Dispatch::Inline`] on the host, else by the resulting buffers. Arguments
    /// are judged before any is donated.
    pub fn execute_with(&self, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
        self.check_arguments(arguments)?;
        let uses = self.take_arguments(arguments, &self.donations(&options.donate)?)?;
        let device = &self.client.0;
        match options.dispatch {
            Dispatch::Inline => {
                let (memories, event) = protect(|| run(device, &*self.executable, uses, options.cancel.as_ref()))?;
                let slots = memories.into_iter().map(|memory| Slot::ready(memory, event.clone()));
                Ok(self.result_buffers(slots))
            }
            Dispatch::Queued => {
                let slots: Vec<_> = self.signature().results().iter().map(|_| Slot::pending()).collect();
                let (client, executable, targets) = (self.client.clone(), self.executable.clone(), slots.clone());
                let cancel = options.cancel.clone();
                let work = move || fill(&targets, protect(|| run(&client.0, &*executable, uses, cancel.as_ref())));
                device.queue().push(Box::new(work));
                Ok(self.result_buffers(slots.into_iter()))
            }
        }
    }

    /// Runs the program on values of the host, one for each parameter, tuples included, and waits for the result.
    pub fn run(&self, parameters: Vec<Literal>) -> Result<Literal> {
        let expected = self.signature().parameters();
        if parameters.len() != expected.len() {
            return Err(self.wrong_count("parameters", expected.len(), parameters.len()));
        }
        for (i, (literal, shape)) in parameters.iter().zip(expected).enumerate() {
            if !literal.shape().compatible(shape) {
                let shown = literal.shape();
                return Err(Error::invalid_argument(format!(
                    "parameter {i} of {} is {shape}, not {shown}",
                    self.name()
                )));
            }
        }
        let leaves = parameters.into_iter().flat_map(ungroup).enumerate();
        let buffers = leaves.map(|(i, leaf)| self.argument_buffer(i, &leaf)).collect::<Result<Vec<_>>>()?;
        // Nobody else has these buffers.
        let options = ExecuteOptions { donate: (0..buffers.len()).collect(), ..ExecuteOptions::default() };
        let results = self.execute_with(&buffers.iter().collect::<Vec<_>>(), &options)?;
        let literals = results.iter().map(Buffer::to_literal).collect::<Result<_>>()?;
        self.signature().group_results(literals)
    }

    fn name(&self) -> &str {
        self.module().name()
    }

    fn check_arguments(&self, arguments: &[&Buffer]) -> Result<()> {
        let expected = self.signature().arguments();
        if arguments.len() != expected.len() {
            return Err(self.wrong_count("arguments", expected.len(), arguments.len()));
        }
        for (i, (buffer, leaf)) in arguments.iter().zip(expected).enumerate() {
            if !Arc::ptr_eq(&buffer.client().0, &self.client.0) {
                return Err(Error::invalid_argument(format!(
                    "{} belongs to another client (of platform {}); copy it with to_literal and argument_buffer",
                    leaf.describe(i),
                    buffer.client().platform()
                )));
            }
            if *buffer.shape() != *leaf.shape {
                return Err(Error::invalid_argument(format!(
                    "{} of {} must be {}, it is {}",
                    leaf.describe(i),
                    self.name(),
                    leaf.shape,
                    buffer.shape()
                )));
            }
            buffer.slot().check_usable().context(|| leaf.describe(i))?;
        }
        Ok(())
    }

    /// Flags of the arguments that are to be donated.
    fn donations(&self, donate: &[usize]) -> Result<Vec<bool>> {
        let arguments = self.signature().arguments();
        let mut flags = vec![false; arguments.len()];
        for &index in donate {
            *flags.get_mut(index).ok_or_else(|| self.no_argument(index))? = true;
        }
        let missing =
            arguments.iter().zip(&flags).position(|(leaf, flag)| leaf.donation == Donation::Required && !flag);
        match missing {
            None => Ok(flags),
            Some(i) => Err(Error::failed_precondition(format!(
                "{} of {} must be donated: a result must alias it",
                arguments[i].describe(i),
                self.name()
            ))),
        }
    }

    /// Slots of the arguments, those to be donated marked as such; or none, if one cannot be donated.
    fn take_arguments(&self, arguments: &[&Buffer], donate: &[bool]) -> Result<Vec<Use>> {
        let mut uses: Vec<Use> = Vec::with_capacity(arguments.len());
        for (i, (buffer, &donated)) in arguments.iter().zip(donate).enumerate() {
            if donated && let Err(error) = buffer.slot().donate() {
                uses.iter().filter(|earlier| earlier.donated).for_each(|earlier| earlier.slot.take_back());
                return Err(error.context(self.signature().arguments()[i].describe(i)));
            }
            uses.push(Use { slot: buffer.slot().clone(), donated });
        }
        Ok(uses)
    }

    fn result_buffers(&self, slots: impl Iterator<Item = Arc<Slot>>) -> Vec<Buffer> {
        let results = self.signature().results().iter();
        results.zip(slots).map(|(leaf, slot)| Buffer::new(self.client.clone(), leaf.shape.clone(), slot)).collect()
    }

    fn wrong_count(&self, what: &str, expected: usize, found: usize) -> Error {
        Error::invalid_argument(format!("{} takes {expected} {what}, {found} were given", self.name()))
    }

    fn no_argument(&self, index: usize) -> Error {
        let count = self.signature().arguments().len();
        Error::invalid_argument(format!("{} has no argument {index}, it takes {count}", self.name()))
    }
}

impl fmt::Debug for LoadedExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedExecutable({} on {})", self.name(), self.client.platform())
    }
}

/// One argument of a launch.
struct Use {
    slot: Arc<Slot>,
    donated: bool,
}

/// Waits for the arguments, launches, and returns the results with the event of their completion.
fn run(
    device: &Device,
    executable: &dyn Executable,
    uses: Vec<Use>,
    cancel: Option<&CancelToken>,
) -> Result<(Vec<DeviceMemory>, Event)> {
    let _span = tracing::debug_span!("execute", module = executable.module().name()).entered();
    let mut arguments = Vec::with_capacity(uses.len());
    // Readers first: a buffer that is both read and donated in this call stays shared.
    let readers: Vec<_> = uses.iter().map(|u| (!u.donated).then(|| u.slot.read_for_program())).collect();
    for (usage, reader) in uses.into_iter().zip(readers) {
        // Every buffer of a client comes from its one stream, in whose order its event has no work left to wait for.
        let (argument, _) = reader.unwrap_or_else(|| usage.slot.take_for_program())?;
        arguments.push(argument);
    }
    let place = || format!("platform {}", device.platform);
    device.stream.annotate(&place);
    let cancel = cancel.unwrap_or(&device.never);
    let results = cancel.check().and_then(|()| executable.execute(&device.context(cancel), arguments));
    device.stream.annotate(&place);
    if results.is_err() {
        // Work that it left in the stream fails, too: consumes that error here, before the next program's event.
        drop(device.stream.record_event());
    }
    let results = results.context(place)?;
    let expected = executable.signature().results().len();
    if results.len() != expected {
        return Err(Error::internal(format!("the backend returned {} results instead of {expected}", results.len())));
    }
    Ok((results, device.stream.record_event()?))
}

fn fill(slots: &[Arc<Slot>], outcome: Result<(Vec<DeviceMemory>, Event)>) {
    match outcome {
        Ok((memories, event)) => {
            slots.iter().zip(memories).for_each(|(slot, memory)| slot.fill(Ok((memory, event.clone()))));
        }
        Err(error) => slots.iter().for_each(|slot| slot.fill(Err(error.again()))),
    }
}
