//! Loaded executables: programs on devices of a client, and queries about them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use xla_hlo::eval::grid::Grid;
use xla_hlo::ops::{CallStates, CustomCallRegistry, RunContext};
use xla_hlo::{Error, LeafSharding, Literal, Module, Op, Result, ResultExt, VerifiedModule};

use super::assignment::Assignment;
use super::buffer::Buffer;
use super::device::{Client, Device, fits, protect};
use super::shards::Shards;
use crate::collective::CollectivePlans;
use crate::executable::{CostAnalysis, Executable, MemoryAnalysis};
use crate::serialized;
use crate::signature::Signature;
use crate::thunks::ThunkSequence;

/// Program compiled for devices of a client. Clones are handles to the same program, which may run on several threads
/// at once.
#[derive(Clone)]
pub struct LoadedExecutable(Arc<Loaded>);

struct Loaded {
    client: Client,
    executable: Arc<dyn Executable>,
    assignment: Assignment,
    /// States of its custom calls on raw memory.
    states: Arc<CallStates>,
    /// Properties of the program's runs, computed on first use.
    nature: OnceLock<Nature>,
    arrangement: Arrangement,
}

/// Work of each device of a program.
#[derive(Clone)]
pub(super) enum Arrangement {
    /// Each device runs the program independently of the others.
    Independent,
    /// Each device runs the program on its own values and communicates with the others.
    PerDevice(Arc<PerDevice>),
    /// The first device does the work of all.
    Joined(Together),
}

/// Program that each device runs on its own values.
pub(super) struct PerDevice {
    /// Module before the passes.
    pub source: VerifiedModule,
    pub grid: Grid,
    /// Operations of the engine for the program's collectives.
    pub plans: Arc<CollectivePlans>,
    /// Shardings of the argument arrays and of the result arrays. Each device has whole arrays of its own.
    pub shardings: [Vec<LeafSharding>; 2],
    /// Identity of the program, equal in all processes, computed on first use.
    pub identity: OnceLock<[u8; 32]>,
}

/// Multi-device program that is joined into one for the first device.
#[derive(Clone)]
pub(super) struct Together {
    /// Joined program, executed by the first device.
    pub program: LoadedExecutable,
    pub parts: Arc<Shards>,
    /// Reason why the devices do not run programs of their own values.
    pub reason: Arc<str>,
}

/// Properties of a program's runs.
#[derive(Clone, Copy, Debug)]
struct Nature {
    /// Whether a run takes less time than waking a thread for it.
    is_cheap: bool,
    /// Whether runs have side effects and must keep their order, even without data dependencies.
    is_ordered: bool,
    has_custom_calls: bool,
}

impl LoadedExecutable {
    /// Creates a program on the client's first device.
    pub(super) fn new(client: Client, executable: Arc<dyn Executable>) -> Result<LoadedExecutable> {
        let states = Arc::new(protect(|| client.0.custom_calls.instantiate(executable.module()))?);
        let (assignment, nature) = (Assignment::default(&client, 1)?, OnceLock::new());
        let arrangement = Arrangement::Independent;
        Ok(LoadedExecutable(Arc::new(Loaded { client, executable, assignment, states, nature, arrangement })))
    }

    /// Returns the multi-device program that this joined program implements.
    pub(super) fn together(&self, parts: Arc<Shards>, reason: Arc<str>) -> Result<LoadedExecutable> {
        let assignment = Assignment::default(self.client(), parts.devices)?;
        assignment.check_local(self.client(), parts.source.name(), &reason)?;
        Ok(self.as_loaded(assignment, Arrangement::Joined(Together { program: self.clone(), parts, reason })))
    }

    /// Returns the same executable for other devices.
    pub(super) fn as_loaded(&self, assignment: Assignment, arrangement: Arrangement) -> LoadedExecutable {
        let Loaded { client, executable, states, nature, .. } = &*self.0;
        let (client, executable, states) = (client.clone(), executable.clone(), states.clone());
        let nature = nature.clone();
        LoadedExecutable(Arc::new(Loaded { client, executable, assignment, states, nature, arrangement }))
    }

    /// Returns the same program for other devices, given by their [global ids](Device::id). Each
    /// [`LoadedExecutable::launch`] runs it on all of them that belong to this process; the other processes launch it
    /// too. [`Error::InvalidArgument`] for an empty list or a repeated device; [`Error::NotFound`] for a device that
    /// does not exist; [`Error::Unimplemented`] for devices of several processes if one device does the work of all.
    pub fn on_devices(&self, devices: &[usize]) -> Result<LoadedExecutable> {
        let assignment = Assignment::new(self.client(), devices)?;
        let arrangement = match self.arrangement() {
            Arrangement::Independent => Arrangement::Independent,
            Arrangement::PerDevice(own) => {
                own.check_devices(devices)?;
                Arrangement::PerDevice(own.clone())
            }
            Arrangement::Joined(Together { program, parts, reason }) => {
                parts.check_devices(devices)?;
                assignment.check_local(self.client(), parts.source.name(), reason)?;
                let program = program.on_devices(&devices[..1])?;
                Arrangement::Joined(Together { program, parts: parts.clone(), reason: reason.clone() })
            }
        };
        Ok(self.as_loaded(assignment, arrangement))
    }

    pub(super) fn arrangement(&self) -> &Arrangement {
        &self.0.arrangement
    }

    pub(super) fn as_together(&self) -> Option<&Together> {
        match self.arrangement() {
            Arrangement::Joined(together) => Some(together),
            Arrangement::Independent | Arrangement::PerDevice(_) => None,
        }
    }

    /// Whether each launch needs all devices of the program.
    pub(super) fn is_for_several_devices(&self) -> bool {
        !matches!(self.arrangement(), Arrangement::Independent)
    }

    /// Returns the client that the program was compiled for.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Returns the program's devices in this process, in the order of their logical ids. Launches run on these.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = Device> + '_ {
        self.0.assignment.local.iter().map(|&index| self.client().device_at(index))
    }

    /// Returns the global ids of the program's devices in all processes, by logical id.
    pub fn device_ids(&self) -> &[usize] {
        &self.0.assignment.ids
    }

    /// Returns the logical ids of the program's devices in this process: `replica * partitions + partition`.
    pub fn logical_ids(&self) -> &[usize] {
        &self.0.assignment.logical
    }

    /// Returns the first of the program's devices in this process.
    fn first_device(&self) -> Result<Device> {
        let first = self.devices().next();
        first.ok_or_else(|| Error::failed_precondition(format!("{} has no device in this process", self.name())))
    }

    pub(super) fn assignment(&self) -> &Assignment {
        &self.0.assignment
    }

    /// Returns the indices of the program's devices among the client's devices in this process.
    pub(super) fn device_indices(&self) -> &[usize] {
        &self.0.assignment.local
    }

    pub(super) fn executable(&self) -> &dyn Executable {
        &*self.0.executable
    }

    /// Returns the handlers of custom calls for one run; `None` if the client's handlers suffice.
    pub(super) fn custom_calls(&self, context: Option<&Arc<RunContext>>) -> Option<CustomCallRegistry> {
        if !self.has_custom_calls() || self.0.states.is_empty() && context.is_none() {
            return None;
        }
        let context = context.cloned().unwrap_or_default();
        Some(self.client().0.custom_calls.for_run(context, self.0.states.clone()))
    }

    /// Whether the program has custom calls, whose handlers may read the [values of a
    /// run](crate::ExecuteOptions::context).
    pub fn has_custom_calls(&self) -> bool {
        self.nature().has_custom_calls
    }

    /// Whether a run takes less time than waking a thread for it.
    pub(super) fn is_cheap(&self) -> bool {
        self.nature().is_cheap
    }

    /// Whether runs have side effects and must keep their order, even without data dependencies.
    pub(super) fn is_ordered(&self) -> bool {
        self.nature().is_ordered
    }

    fn nature(&self) -> Nature {
        *self.0.nature.get_or_init(|| Nature::of(self.module()))
    }

    /// Returns the module after the compiler's passes; for programs on global values of several devices the joined
    /// module.
    pub fn module(&self) -> &Module {
        self.executable().module()
    }

    /// Returns the arguments and results of each device.
    pub fn signature(&self) -> &Signature {
        self.as_together().map_or_else(|| self.executable().signature(), |together| &together.parts.signature)
    }

    /// Returns the memory that one run takes.
    pub fn memory_analysis(&self) -> MemoryAnalysis {
        self.executable().memory_analysis()
    }

    /// Returns the cost of one run.
    pub fn cost_analysis(&self) -> CostAnalysis {
        self.executable().cost_analysis()
    }

    /// Returns the thunks of the program, for reports of native and host execution; `None` if the backend compiles it
    /// as a whole.
    pub fn thunks(&self) -> Option<&ThunkSequence> {
        self.executable().thunks()
    }

    /// Returns dumps of the program (thunks, buffers, code) as named texts.
    pub fn dumps(&self) -> Vec<(String, String)> {
        self.executable().dumps()
    }

    /// Serialises the program for [`Client::load`], which trusts any machine code in it. [`Error::Unimplemented`] if
    /// the platform does not support serialisation, and for programs that several devices execute together.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        if self.is_for_several_devices() {
            return Err(serialized::of_several_devices(self.name()));
        }
        let serializer = self.executable().serializer();
        protect(|| serializer.ok_or_else(|| self.client().cannot("serialise programs"))?.serialize())
    }

    /// Copies a literal to the device, in the layout of argument `index`.
    pub fn argument_buffer(&self, index: usize, literal: &Literal) -> Result<Buffer> {
        let leaf = self.signature().arguments().get(index).ok_or_else(|| self.no_argument(index))?;
        fits(literal, &leaf.shape).context(|| leaf.describe(index))?;
        self.first_device()?.buffer_for(literal, &leaf.shape, &|| format!("{}, {}", leaf.describe(index), leaf.shape))
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
    /// Work, in elementary operations and bytes, that takes about as long as waking a thread.
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
