//! Routines on a GPU: sent one by one, or kept as graphs where they come again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ExecutionBuffers, KernelRef, Launch, Thunk, ThunkId, ThunkKind, ThunkSequence};
use xla_service::{ExecutionContext, Stream};

use super::code::CudaModule;
use super::executor::{CudaMemory, address_on, scratch};
use super::graph::hazards::{Access, Hazards};
use super::graph::{GraphSlot, Recording};
use super::library::Libraries;
use super::stream::CudaStream;
use crate::device::{Routine, Step, Word};
use crate::launch::{DeviceCode, array, drawn, no_scratch};
use crate::stored::DeviceProgram;

/// Thunks from which on a sequence is kept as a graph.
const WORTH_A_GRAPH: usize = 4;
/// Memories of routines have numbers from here on; those below are allocations.
const SCRATCH: usize = usize::MAX / 2;

/// The code of a program for GPUs, loaded into each when it first runs there.
#[derive(Debug)]
pub(crate) struct GpuCode {
    program: Arc<DeviceProgram>,
    loaded: Mutex<HashMap<usize, Arc<Loaded>>>,
}

/// The code on one device.
#[derive(Debug)]
struct Loaded {
    /// By the first thunk of the sequence, or a loop's own. They go before the code that they launch.
    graphs: Mutex<HashMap<ThunkId, Arc<Kept>>>,
    module: CudaModule,
    libraries: Libraries,
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
    /// For each launch, those before that it comes behind; worked out when the sequence first runs.
    order: Mutex<Option<Arc<[Vec<usize>]>>>,
}

/// Work with its addresses, in the order in which it is sent.
enum Piece<'a> {
    Launch { function: usize, blocks: u32, words: Vec<u64> },
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: &'a super::library::LibraryCall, addresses: Vec<u64> },
}

impl DeviceCode for GpuCode {
    fn run(&self, routine: &Routine, launch: &mut Launch<'_>) -> Result<()> {
        let stream: &CudaStream = launch.context.stream.downcast()?;
        let loaded = self.on(stream)?;
        let mut pieces = Vec::new();
        // Given back in the order of the stream, behind the routine.
        let _scratch = gather(&loaded, routine, launch.thunk, launch.buffers, launch.context, &mut pieces)?;
        for piece in pieces {
            match piece {
                Piece::Launch { function, blocks, words } => {
                    stream.launch(loaded.module.call(function, blocks, &words)?)?;
                }
                Piece::Copy { from, to, bytes } => stream.copy_apart(from, to, bytes)?,
                Piece::Library { call, addresses } => loaded.libraries.run(call, &addresses, stream)?,
            }
        }
        Ok(())
    }

    fn on_gpu(&self) -> Option<&GpuCode> {
        Some(self)
    }
}

impl GpuCode {
    /// Nothing is loaded yet.
    pub fn new(program: Arc<DeviceProgram>) -> GpuCode {
        GpuCode { program, loaded: Mutex::default() }
    }

    /// The code on the stream's device.
    fn on(&self, stream: &CudaStream) -> Result<Arc<Loaded>> {
        let context = stream.queue().context();
        // A failed load leaves the table as it was.
        let mut table = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = table.get(&context.ordinal()) {
            return Ok(loaded.clone());
        }
        let module = CudaModule::load(context, &self.program.image_for(context.info().capability)?)?;
        let loaded = Arc::new(Loaded { module, libraries: Libraries::new(context), graphs: Mutex::default() });
        table.insert(context.ordinal(), loaded.clone());
        Ok(loaded)
    }

    /// Sends a sequence as one graph, if it is long enough.
    pub fn run_sequence<'a>(
        &self,
        sequence: &ThunkSequence,
        routine: &dyn Fn(&KernelRef) -> Result<&'a Routine>,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool> {
        let Some(first) = sequence.thunks.first().filter(|_| sequence.thunks.len() >= WORTH_A_GRAPH) else {
            return Ok(false);
        };
        let stream: &CudaStream = context.stream.downcast()?;
        if stream.takes_notes() {
            return Ok(false);
        }
        let loaded = self.on(stream)?;
        let kept = loaded.kept(first.id);
        let (mut pieces, mut owners) = (Vec::new(), Vec::new());
        let mut recording = Recording::default();
        for (number, thunk) in sequence.thunks.iter().enumerate() {
            match &thunk.kind {
                ThunkKind::Kernel(kernel) => {
                    let scratch = gather(&loaded, routine(kernel)?, thunk, buffers, context, &mut pieces)?;
                    scratch.into_iter().for_each(|memory| recording.keep(memory));
                }
                ThunkKind::Copy => pieces.push(copy(thunk, [0, 1], buffers, stream)?),
                _ => return Err(Error::internal(format!("{} is no launch", thunk.name))),
            }
            owners.resize(pieces.len(), number);
        }
        let order = kept.order(sequence, &owners);
        for (piece, after) in pieces.into_iter().zip(order.iter()) {
            match piece {
                Piece::Launch { function, blocks, words } => {
                    recording.kernel(loaded.module.call(function, blocks, &words)?, after);
                }
                Piece::Copy { from, to, bytes } => _ = recording.copy(from, to, bytes, after),
                Piece::Library { call, addresses } => {
                    let bytes = loaded.libraries.workspace(call, &addresses)?;
                    let memory = scratch(stream, bytes)?;
                    recording.library(call, &addresses, memory.address_on(stream, 0, bytes)?, after);
                    recording.keep(memory);
                }
            }
        }
        kept.slot.run(recording, &loaded.libraries, stream)?;
        Ok(true)
    }
}

/// Loops whose predicates the device itself looks at: their thunks are sent to streams that take notes, which become graphs.
impl GpuCode {
    /// A stream that takes notes for the context's.
    pub fn notes(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>> {
        Ok(Box::new(context.stream.downcast::<CudaStream>()?.notes()))
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
    fn order(&self, sequence: &ThunkSequence, owners: &[usize]) -> Arc<[Vec<usize>]> {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(order) = order.as_ref().filter(|order| order.len() == owners.len()) {
            return order.clone();
        }
        let mut hazards = Hazards::default();
        let found = owners.iter().map(|&owner| hazards.add(&accesses(&sequence.thunks[owner], owner))).collect();
        order.insert(found).clone()
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

/// The pieces of a routine with their addresses, and the scratch memory that must live until they are sent.
fn gather<'a>(
    loaded: &Loaded,
    routine: &'a Routine,
    thunk: &Thunk,
    buffers: &ExecutionBuffers,
    context: &ExecutionContext<'_>,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<Vec<CudaMemory>> {
    let stream: &CudaStream = context.stream.downcast()?;
    let memories = routine.scratch.iter().map(|&bytes| scratch(stream, bytes)).collect::<Result<Vec<_>>>()?;
    let scratch = memories.iter().zip(&routine.scratch).map(|(memory, &bytes)| memory.address_on(stream, 0, bytes));
    let scratch = scratch.collect::<Result<Vec<u64>>>()?;
    let own = (&scratch[..], drawn(routine, context));
    gather_steps(loaded, &routine.steps, thunk, buffers, stream, own, pieces)?;
    Ok(memories)
}

fn gather_steps<'a>(
    loaded: &Loaded,
    steps: &'a [Step],
    thunk: &Thunk,
    buffers: &ExecutionBuffers,
    stream: &CudaStream,
    own: (&[u64], [u64; 2]),
    pieces: &mut Vec<Piece<'a>>,
) -> Result<()> {
    let (scratch, counter) = own;
    for step in steps {
        match step {
            Step::Copy { from, to } => pieces.push(copy(thunk, [*from, *to], buffers, stream)?),
            Step::Launch { function, blocks, arguments } => {
                let word = |word: &Word| match *word {
                    Word::Number(number) => Ok(number as u64),
                    Word::Scratch(number) => scratch.get(number).copied().ok_or_else(no_scratch),
                    Word::Counter(half) => counter.get(half).copied().ok_or_else(no_scratch),
                    Word::Array(number) => address(thunk, number, buffers, stream),
                };
                let words = arguments.iter().map(word).collect::<Result<_>>()?;
                pieces.push(Piece::Launch { function: *function, blocks: *blocks, words });
            }
            Step::Library { call, arrays, then, otherwise } => {
                let addresses = arrays.iter().map(|&number| address(thunk, number, buffers, stream));
                let addresses = addresses.collect::<Result<Vec<u64>>>()?;
                // The first question to a library that is not installed says so.
                match loaded.libraries.workspace(call, &addresses) {
                    Ok(_) => {
                        pieces.push(Piece::Library { call, addresses });
                        gather_steps(loaded, then, thunk, buffers, stream, own, pieces)?;
                    }
                    Err(Error::FailedPrecondition(_) | Error::Unimplemented(_)) if !otherwise.is_empty() => {
                        gather_steps(loaded, otherwise, thunk, buffers, stream, own, pieces)?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

fn address(thunk: &Thunk, number: usize, buffers: &ExecutionBuffers, stream: &CudaStream) -> Result<u64> {
    let Slice { allocation, offset, size } = array(thunk, number)?.slice;
    address_on(buffers.memory(allocation)?, stream, offset, size)
}

/// A copy from one array of a thunk to another.
fn copy(
    thunk: &Thunk,
    [from, to]: [usize; 2],
    buffers: &ExecutionBuffers,
    stream: &CudaStream,
) -> Result<Piece<'static>> {
    let bytes = array(thunk, to)?.slice.size;
    Ok(Piece::Copy { from: address(thunk, from, buffers, stream)?, to: address(thunk, to, buffers, stream)?, bytes })
}
