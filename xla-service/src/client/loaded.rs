//! Loaded executables: programs on devices of a client, and their descriptions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use xla_hlo::ops::{CallStates, CustomCallRegistry, RunContext};
use xla_hlo::{Error, Literal, Module, Op, Result, ResultExt};

use super::buffer::Buffer;
use super::device::{Client, Device, fits, protect};
use super::parts::Parts;
use crate::executable::{CostAnalysis, Executable, MemoryAnalysis};
use crate::signature::Signature;
use crate::thunks::ThunkSequence;

/// A program, compiled for devices of a client. A clone is another handle; programs may be run from many threads at
/// once.
#[derive(Clone)]
pub struct LoadedExecutable(Arc<Loaded>);

struct Loaded {
    client: Client,
    executable: Arc<dyn Executable>,
    /// Numbers of its devices among the client's.
    devices: Vec<usize>,
    /// States of its custom calls on raw memory.
    states: Arc<CallStates>,
    /// The nature of the program's runs, once somebody has asked.
    nature: OnceLock<Nature>,
    /// A program for devices that work together.
    together: Option<Together>,
}

/// A program for several devices that work together.
#[derive(Clone)]
pub(super) struct Together {
    /// The program that the first of them runs.
    pub program: LoadedExecutable,
    pub parts: Arc<Parts>,
}

/// Nature of a program's runs.
#[derive(Clone, Copy, Debug)]
struct Nature {
    /// It takes less time than waking a thread for it.
    is_cheap: bool,
    /// Runs must keep their order, whatever their data says.
    is_ordered: bool,
    has_custom_calls: bool,
}

impl LoadedExecutable {
    /// A program for the client's first device.
    pub(super) fn new(client: Client, executable: Arc<dyn Executable>) -> Result<LoadedExecutable> {
        let states = Arc::new(protect(|| client.0.custom_calls.instantiate(executable.module()))?);
        let (devices, nature) = (vec![0], OnceLock::new());
        Ok(LoadedExecutable(Arc::new(Loaded { client, executable, devices, states, nature, together: None })))
    }

    /// The program of several devices that this one does the work of.
    pub(super) fn together(&self, parts: Arc<Parts>) -> LoadedExecutable {
        self.as_loaded((0..parts.devices).collect(), Some(Together { program: self.clone(), parts }))
    }

    fn as_loaded(&self, devices: Vec<usize>, together: Option<Together>) -> LoadedExecutable {
        let Loaded { client, executable, states, nature, .. } = &*self.0;
        let (client, executable, states) = (client.clone(), executable.clone(), states.clone());
        LoadedExecutable(Arc::new(Loaded { client, executable, devices, states, nature: nature.clone(), together }))
    }

    /// The same program for other devices of the client, by their [numbers](Device::index): it runs on all of them at
    /// each [`LoadedExecutable::launch`]. [`Error::InvalidArgument`] for no device, or one twice; `Error::NotFound` for
    /// one that is not there.
    pub fn on_devices(&self, devices: &[usize]) -> Result<LoadedExecutable> {
        for (i, &index) in devices.iter().enumerate() {
            self.client().device(index)?;
            if devices[..i].contains(&index) {
                return Err(Error::invalid_argument(format!("a program cannot run on device {index} twice at a time")));
            }
        }
        if devices.is_empty() {
            return Err(Error::invalid_argument("a program must run on some device"));
        }
        let together = self.as_together().map(|Together { program, parts }| {
            parts.check_devices(devices)?;
            Ok(Together { program: program.on_devices(&devices[..1])?, parts: parts.clone() })
        });
        let together = together.transpose()?;
        Ok(self.as_loaded(devices.to_vec(), together))
    }

    pub(super) fn as_together(&self) -> Option<&Together> {
        self.0.together.as_ref()
    }

    /// The client it was compiled for.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Its devices.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = Device> + '_ {
        self.0.devices.iter().map(|&index| self.client().device_at(index))
    }

    /// The first of its devices.
    fn first_device(&self) -> Device {
        self.client().device_at(self.0.devices[0])
    }

    pub(super) fn device_indices(&self) -> &[usize] {
        &self.0.devices
    }

    pub(super) fn executable(&self) -> &dyn Executable {
        &*self.0.executable
    }

    /// The handlers of custom calls for one run; `None` where those of the client do.
    pub(super) fn custom_calls(&self, context: Option<&Arc<RunContext>>) -> Option<CustomCallRegistry> {
        if !self.has_custom_calls() || self.0.states.is_empty() && context.is_none() {
            return None;
        }
        let context = context.cloned().unwrap_or_default();
        Some(self.client().0.custom_calls.for_run(context, self.0.states.clone()))
    }

    /// Whether it has custom calls, whose handlers may want the [values of a run](crate::ExecuteOptions::context).
    pub fn has_custom_calls(&self) -> bool {
        self.nature().has_custom_calls
    }

    /// Whether a run takes less time than waking a thread for it.
    pub(super) fn is_cheap(&self) -> bool {
        self.nature().is_cheap
    }

    /// Whether runs must keep their order, whatever their data says.
    pub(super) fn is_ordered(&self) -> bool {
        self.nature().is_ordered
    }

    fn nature(&self) -> Nature {
        *self.0.nature.get_or_init(|| Nature::of(self.module()))
    }

    /// The module after the compiler's passes. Of devices that work together it is that of the one that does the work.
    pub fn module(&self) -> &Module {
        self.executable().module()
    }

    /// Arguments and results of each device.
    pub fn signature(&self) -> &Signature {
        self.as_together().map_or_else(|| self.executable().signature(), |together| &together.parts.signature)
    }

    /// Memory that one run takes.
    pub fn memory_analysis(&self) -> MemoryAnalysis {
        self.executable().memory_analysis()
    }

    /// Work that one run does.
    pub fn cost_analysis(&self) -> CostAnalysis {
        self.executable().cost_analysis()
    }

    /// The steps it runs in, for reports of native and host execution; `None` for a program that is one whole.
    pub fn thunks(&self) -> Option<&ThunkSequence> {
        self.executable().thunks()
    }

    /// Dumps of the program (thunks, buffers, code), as named texts.
    pub fn dumps(&self) -> Vec<(String, String)> {
        self.executable().dumps()
    }

    /// Writes the program down; [`Client::load`] reads it, and trusts the machine code in it. [`Error::Unimplemented`]
    /// where the platform cannot, and for programs of several devices that work together.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        if self.as_together().is_some() {
            return Err(self.client().cannot("serialise programs of several devices"));
        }
        let serializer = self.executable().serializer();
        protect(|| serializer.ok_or_else(|| self.client().cannot("serialise programs"))?.serialize())
    }

    /// An array on the device in the layout that argument `index` wants.
    pub fn argument_buffer(&self, index: usize, literal: &Literal) -> Result<Buffer> {
        let leaf = self.signature().arguments().get(index).ok_or_else(|| self.no_argument(index))?;
        fits(literal, &leaf.shape).context(|| leaf.describe(index))?;
        self.first_device().buffer_for(literal, &leaf.shape, &|| format!("{}, {}", leaf.describe(index), leaf.shape))
    }

    pub(super) fn name(&self) -> &str {
        self.module().name()
    }

    pub(super) fn wrong_count(&self, what: &str, expected: usize, found: usize) -> Error {
        Error::invalid_argument(format!("{} takes {expected} {what}, {found} were given", self.name()))
    }

    pub(super) fn no_argument(&self, index: usize) -> Error {
        let count = self.signature().arguments().len();
        Error::invalid_argument(format!("{} has no argument {index}, it takes {count}", self.name()))
    }
}

impl fmt::Debug for LoadedExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedExecutable({} on {})", self.name(), self.client().platform())
    }
}

impl Nature {
    /// Elementary steps and bytes that are done in the time in which a thread wakes up.
    const CHEAP: u64 = 1 << 16;

    fn of(module: &Module) -> Nature {
        let cost = xla_passes::analysis::cost::analyze(module);
        let (total, is_bounded) = (cost.total, cost.unknown_loops.is_empty());
        let work = total.flops.saturating_add(total.transcendentals.saturating_mul(16)).saturating_add(total.bytes());
        let ops = || module.ids().flat_map(|id| module[id].iter()).map(|(_, instruction)| instruction.op());
        let has_custom_calls = ops().any(|op| matches!(op, Op::CustomCall(_)));
        let is_cheap = work <= Nature::CHEAP && is_bounded && !has_custom_calls;
        let is_ordered = ops().any(|op| op.has_side_effect() && !matches!(op, Op::CustomCall(_)));
        Nature { is_cheap, is_ordered, has_custom_calls }
    }
}
