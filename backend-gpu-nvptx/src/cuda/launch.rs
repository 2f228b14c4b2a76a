//! Routines on a GPU: sent one by one, or kept as graphs where they come again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ExecutionBuffers, KernelRef, Launch, Thunk, ThunkId, ThunkKind, ThunkSequence};
use xla_service::{CompileOptions, ExecutionContext, OptLevel, Stream};

use super::code::CudaModule;
use super::context::Context;
use super::executor::{address_on, scratch};
use super::graph::hazards::{Access, Hazards};
use super::graph::{GraphSlot, Recording};
use super::library::{Libraries, LibraryCall};
use super::linker::Linker;
use super::resolve::{LaunchContext, ResolvedCommand, copy};
use super::stream::CudaStream;
use crate::autotune::Candidate;
use crate::caches::{AllCaches, Caches};
use crate::device::CommandSequence;
use crate::launch::DeviceCode;
use crate::ptx::Assemble;
use crate::stored::DeviceProgram;

/// Thunks from which on a sequence is kept as a graph.
const WORTH_A_GRAPH: usize = 4;
/// Memories of routines have numbers from here on; those below are allocations.
const SCRATCH: usize = usize::MAX / 2;

/// The code of a program for GPUs, loaded into each when it first runs there.
#[derive(Debug)]
pub(crate) struct GpuCode {
    program: Arc<DeviceProgram>,
    caches: Arc<Caches>,
    makes_graphs: bool,
    loaded: Mutex<HashMap<usize, Arc<Loaded>>>,
}

/// The code on one device.
#[derive(Debug)]
pub(super) struct Loaded {
    /// By the first thunk of the sequence, or a loop's own. They go before the code that they launch.
    graphs: Mutex<HashMap<ThunkId, Arc<Kept>>>,
    pub(super) module: CudaModule,
    pub(super) libraries: Libraries,
    /// What was found to be the fastest way for calls of this program.
    pub(super) candidates: Mutex<HashMap<LibraryCall, Candidate>>,
}

impl Loaded {
    fn kept(&self, thunk: ThunkId) -> Arc<Kept> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner).entry(thunk).or_default().clone()
    }
}

/// A sequence that is kept.
#[derive(Debug, Default)]
struct Kept {
    slot: GraphSlot,
    /// The thunk of each launch, and for each launch those before that it comes behind; worked out when the sequence
    /// first runs.
    order: Mutex<Option<(Vec<usize>, Order)>>,
}

/// For each piece of work, the numbers of those before that it comes behind.
type Order = Arc<[Vec<usize>]>;

impl DeviceCode for GpuCode {
    fn run(&self, commands: &CommandSequence, launch: &mut Launch<'_>) -> Result<()> {
        let stream: &CudaStream = launch.context.stream.downcast()?;
        let loaded = self.on(stream)?;
        let mut resolved = Vec::new();
        // Its memory is given back in the order of the stream, behind the routine.
        let launch_context = LaunchContext::new(
            &loaded,
            &self.caches.autotune,
            commands,
            launch.thunk,
            launch.buffers,
            (stream, launch.context.random),
        )?;
        launch_context.resolve(&commands.commands, &mut resolved)?;
        resolved.iter().try_for_each(|command| command.send(&loaded, stream))
    }

    fn with_graphs(&self) -> Option<&GpuCode> {
        self.makes_graphs.then_some(self)
    }
}

impl GpuCode {
    /// Nothing is loaded yet. Without optimisation all work is sent piece by piece.
    pub fn new(program: Arc<DeviceProgram>, caches: &AllCaches, options: &CompileOptions) -> GpuCode {
        let makes_graphs = options.opt_level > OptLevel::O0;
        GpuCode { program, caches: caches.of(options), makes_graphs, loaded: Mutex::default() }
    }

    /// The code on the stream's device.
    fn on(&self, stream: &CudaStream) -> Result<Arc<Loaded>> {
        let context = stream.queue().context();
        // A failed load leaves the table as it was.
        let mut table = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = table.get(&context.ordinal()) {
            return Ok(loaded.clone());
        }
        let (module, libraries) = (self.load(context)?, Libraries::new(context));
        let loaded = Arc::new(Loaded { module, libraries, candidates: Mutex::default(), graphs: Mutex::default() });
        table.insert(context.ordinal(), loaded.clone());
        Ok(loaded)
    }

    /// Loads the code; as machine code, if that is kept.
    fn load(&self, context: &Arc<Context>) -> Result<CudaModule> {
        let capability = context.info().capability;
        let image = self.program.image_for(capability)?;
        let linker = Linker::new(context);
        let linker = linker.as_ref().map(|linker| linker as &dyn Assemble);
        let architecture = self.program.architecture_on(capability);
        if let Some(machine_code) = self.caches.machine_code.machine_code(&image, &architecture, linker) {
            match CudaModule::load(context, &machine_code) {
                Ok(module) => return Ok(module),
                Err(error) => tracing::warn!(%error, "kept machine code cannot be loaded; the driver assembles again"),
            }
        }
        CudaModule::load(context, &image)
    }

    /// Sends a sequence as one graph, if it is long enough.
    pub fn run_sequence<'a>(
        &self,
        sequence: &ThunkSequence,
        commands: &dyn Fn(&KernelRef) -> Result<&'a CommandSequence>,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool> {
        let Some(first) = sequence.thunks.first().filter(|_| sequence.thunks.len() >= WORTH_A_GRAPH) else {
            return Ok(false);
        };
        let stream: &CudaStream = context.stream.downcast()?;
        if stream.is_capturing() {
            return Ok(false);
        }
        let loaded = self.on(stream)?;
        let kept = loaded.kept(first.id);
        let (mut resolved, mut owners) = (Vec::new(), Vec::new());
        let mut recording = Recording::default();
        for (number, thunk) in sequence.thunks.iter().enumerate() {
            match &thunk.kind {
                ThunkKind::Kernel(kernel) => {
                    let commands = commands(kernel)?;
                    let launch_context = LaunchContext::new(
                        &loaded,
                        &self.caches.autotune,
                        commands,
                        thunk,
                        buffers,
                        (stream, context.random),
                    )?;
                    launch_context.resolve(&commands.commands, &mut resolved)?;
                    launch_context.scratch.into_iter().for_each(|memory| recording.keep(memory));
                }
                ThunkKind::Copy => resolved.push(copy(thunk, [0, 1], buffers, stream)?),
                _ => return Err(Error::internal(format!("{} is no launch", thunk.name))),
            }
            owners.resize(resolved.len(), number);
        }
        let order = kept.order(sequence, &owners);
        for (command, after) in resolved.into_iter().zip(order.iter()) {
            match command {
                ResolvedCommand::Launch { function, blocks, arguments } => {
                    recording.kernel(loaded.module.call(function, blocks, &arguments)?, after);
                }
                ResolvedCommand::Copy { from, to, bytes } => _ = recording.copy(from, to, bytes, after),
                ResolvedCommand::Library { call, addresses } => {
                    let bytes = loaded.libraries.workspace(&call, &addresses)?;
                    let memory = scratch(stream, bytes)?;
                    recording.library(&call, &addresses, memory.address_on(stream, 0, bytes)?, after);
                    recording.keep(memory);
                }
            }
        }
        kept.slot.run(recording, &loaded.libraries, stream)?;
        Ok(true)
    }
}

/// Loops whose predicates the device itself looks at: their thunks are sent to streams that take notes, which become
/// graphs.
impl GpuCode {
    /// A stream that takes notes for the context's.
    pub fn capture(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>> {
        Ok(Box::new(context.stream.downcast::<CudaStream>()?.capture()))
    }

    /// Sends a loop to the launch's stream.
    pub fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: &dyn Stream,
        predicate: Slice,
        body: &dyn Stream,
    ) -> Result<()> {
        let stream: &CudaStream = launch.context.stream.downcast()?;
        let loaded = self.on(stream)?;
        let memory = launch.buffers.memory(predicate.allocation)?;
        let predicate = address_on(memory, stream, predicate.offset, predicate.size)?;
        let (condition, body) = (condition.downcast()?, body.downcast()?);
        stream.repeat(condition, predicate, body, &loaded.kept(launch.thunk.id).slot, &loaded.libraries)
    }
}

impl Kept {
    /// What each piece comes behind. Those of one thunk come one behind the other.
    fn order(&self, sequence: &ThunkSequence, owners: &[usize]) -> Order {
        let mut known = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        // A library's call may have become kernels, or the other way around.
        if let Some((_, order)) = known.as_ref().filter(|(of, _)| of == owners) {
            return order.clone();
        }
        let mut hazards = Hazards::default();
        let found = owners.iter().map(|&owner| hazards.add(&accesses(&sequence.thunks[owner], owner)));
        let order: Order = found.collect();
        *known = Some((owners.to_vec(), order.clone()));
        order
    }
}

/// What a thunk reads and writes, its own scratch memory among it.
fn accesses(thunk: &Thunk, number: usize) -> Vec<Access> {
    let of = |slice: Slice, writes| Access {
        memory: slice.allocation.index(),
        bytes: slice.offset..slice.offset + slice.size,
        writes,
    };
    let reads = thunk.operands.iter().map(|array| of(array.slice, false));
    let writes = thunk.results.iter().map(|array| of(array.slice, true));
    let own = Access { memory: SCRATCH + number, bytes: 0..1, writes: true };
    reads.chain(writes).chain([own]).collect()
}
