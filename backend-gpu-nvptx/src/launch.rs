//! Launching: a thunk's routine with the addresses of its arrays, on either kind of device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ArraySlice, KernelRef, Launch, Launcher, LibraryRef};

use crate::cuda::code::CudaModule;
use crate::cuda::executor::{address_on, scratch};
use crate::cuda::stream::CudaStream;
use crate::device::{Image, Routine, Step, Word};
use crate::host::{HostCode, HostStream};

/// Starts what was lowered.
#[derive(Debug)]
pub(crate) struct GpuLauncher {
    /// By [`KernelRef::index`].
    routines: Vec<Routine>,
    code: Code,
}

/// The program's code, where it runs.
#[derive(Debug)]
enum Code {
    Host(HostCode),
    /// Loaded into each GPU when it first runs there.
    Gpu {
        image: Image,
        loaded: Mutex<HashMap<usize, Arc<CudaModule>>>,
    },
}

impl GpuLauncher {
    /// For the host in the place of a GPU.
    pub fn for_host(routines: Vec<Routine>, image: &Image) -> Result<GpuLauncher> {
        Ok(GpuLauncher { routines, code: Code::Host(HostCode::load(image)?) })
    }

    /// For GPUs.
    pub fn for_gpu(routines: Vec<Routine>, image: Image) -> GpuLauncher {
        GpuLauncher { routines, code: Code::Gpu { image, loaded: Mutex::default() } }
    }

    fn run(&self, routine: &Routine, launch: &mut Launch<'_>) -> Result<()> {
        match &self.code {
            Code::Host(code) => run_on_host(code, routine, launch),
            Code::Gpu { image, loaded } => {
                let stream: &CudaStream = launch.context.stream.downcast()?;
                let module = module(image, loaded, stream)?;
                run_on_gpu(&module, routine, launch, stream)
            }
        }
    }
}

impl Launcher for GpuLauncher {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        let routine = self.routines.get(kernel.index as usize);
        self.run(routine.ok_or_else(|| Error::internal("a kernel that was never lowered"))?, launch)
    }

    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("library call {} was never lowered", call.name)))
    }
}

/// The code on the stream's device.
fn module(
    image: &Image,
    loaded: &Mutex<HashMap<usize, Arc<CudaModule>>>,
    stream: &CudaStream,
) -> Result<Arc<CudaModule>> {
    let context = stream.queue().context();
    // A failed load leaves the table as it was.
    let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = loaded.get(&context.ordinal()) {
        return Ok(module.clone());
    }
    let module = Arc::new(CudaModule::load(context, image)?);
    loaded.insert(context.ordinal(), module.clone());
    Ok(module)
}

fn run_on_gpu(module: &CudaModule, routine: &Routine, launch: &mut Launch<'_>, stream: &CudaStream) -> Result<()> {
    let memories = routine.scratch.iter().map(|&bytes| scratch(stream, bytes)).collect::<Result<Vec<_>>>()?;
    for step in &routine.steps {
        match step {
            Step::Copy { from, to } => {
                let (from, to) = (array(launch, *from)?.slice, array(launch, *to)?.slice);
                launch.buffers.copy(launch.context, from, to)?;
            }
            Step::Launch { function, blocks, arguments } => {
                let word = |word: &Word| match *word {
                    Word::Number(number) => Ok(number as u64),
                    Word::Scratch(number) => match (memories.get(number), routine.scratch.get(number)) {
                        (Some(memory), Some(&bytes)) => memory.address_on(stream, 0, bytes),
                        _ => Err(Error::internal("scratch memory that is not there")),
                    },
                    Word::Array(number) => {
                        let Slice { allocation, offset, size } = array(launch, number)?.slice;
                        address_on(launch.buffers.memory(allocation)?, stream, offset, size)
                    }
                };
                let words = arguments.iter().map(word).collect::<Result<Vec<u64>>>()?;
                stream.launch(module.call(*function, *blocks, &words)?)?;
            }
        }
    }
    Ok(())
}

fn run_on_host(code: &HostCode, routine: &Routine, launch: &mut Launch<'_>) -> Result<()> {
    let stream: &HostStream = launch.context.stream.downcast()?;
    let scratch = routine.scratch.iter().map(|&bytes| launch.context.executor.allocate(bytes));
    let scratch = scratch.collect::<Result<Vec<_>>>()?;
    // What a kernel reads and writes is told for the whole thunk, whatever its steps.
    let label = launch.thunk.place();
    for operand in &launch.thunk.operands {
        stream.reads(launch.buffers.memory(operand.slice.allocation)?, operand.slice, &label)?;
    }
    for result in &launch.thunk.results {
        stream.writes(launch.buffers.memory(result.slice.allocation)?, result.slice, &label)?;
    }
    stream.launches()?;
    for step in &routine.steps {
        match step {
            Step::Copy { from, to } => {
                let (from, to) = (array(launch, *from)?.slice, array(launch, *to)?.slice);
                launch.buffers.copy(launch.context, from, to)?;
            }
            Step::Launch { function, blocks, arguments } => {
                let word = |word: &Word| match *word {
                    Word::Number(number) => Ok(number as u64),
                    Word::Scratch(number) => match scratch.get(number) {
                        Some(memory) => HostStream::address(memory, 0),
                        None => Err(Error::internal("scratch memory that is not there")),
                    },
                    Word::Array(number) => {
                        let slice = array(launch, number)?.slice;
                        HostStream::address(launch.buffers.memory(slice.allocation)?, slice.offset)
                    }
                };
                let words = arguments.iter().map(word).collect::<Result<Vec<u64>>>()?;
                code.launch(*function, *blocks, &words)?;
            }
        }
    }
    Ok(())
}

/// An array of the thunk: operands, then results.
fn array<'a>(launch: &'a Launch<'_>, number: usize) -> Result<&'a ArraySlice> {
    let mut arrays = launch.thunk.operands.iter().chain(&launch.thunk.results);
    arrays.nth(number).ok_or_else(|| Error::internal("an array that the thunk has not"))
}
