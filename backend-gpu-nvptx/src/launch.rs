//! Launching: a thunk's routine with the addresses of its arrays, on either kind of device.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{
    ArraySlice, DeviceLoops, ExecutionBuffers, KernelRef, Launch, Launcher, LibraryRef, SequenceLauncher, Thunk,
    ThunkSequence,
};
use xla_service::{DeviceMemory, ExecutionContext, Stream};

use crate::cuda::driver::Driver;
use crate::cuda::launch::GpuCode;
use crate::device::{Routine, Step, Word};
use crate::host::{HostCode, HostStream};
use crate::stored::DeviceProgram;

/// Starts what was lowered.
#[derive(Debug)]
pub(crate) struct GpuLauncher {
    device: Arc<DeviceProgram>,
    code: Code,
}

/// The program's code, where it runs.
#[derive(Debug)]
enum Code {
    Host(HostCode),
    Gpu(GpuCode),
}

impl GpuLauncher {
    /// For the host in the place of a GPU.
    pub fn for_host(device: Arc<DeviceProgram>) -> Result<GpuLauncher> {
        Ok(GpuLauncher { code: Code::Host(HostCode::load(&device.image)?), device })
    }

    /// For GPUs.
    pub fn for_gpu(device: Arc<DeviceProgram>) -> GpuLauncher {
        GpuLauncher { code: Code::Gpu(GpuCode::new(device.clone())), device }
    }

    fn routine(&self, kernel: &KernelRef) -> Result<&Routine> {
        let routine = self.device.routines.get(kernel.index as usize);
        routine.ok_or_else(|| Error::internal("a kernel that was never lowered"))
    }
}

impl Launcher for GpuLauncher {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        let routine = self.routine(kernel)?;
        match &self.code {
            Code::Host(code) => run_on_host(code, routine, launch),
            Code::Gpu(code) => code.run(routine, launch),
        }
    }

    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("library call {} was never lowered", call.name)))
    }

    fn sequences(&self) -> Option<&dyn SequenceLauncher> {
        match &self.code {
            Code::Host(_) => None,
            Code::Gpu(_) => Some(self),
        }
    }

    fn device_loops(&self) -> Option<&dyn DeviceLoops> {
        match &self.code {
            Code::Gpu(_) if Driver::get().is_ok_and(Driver::has_loops) => Some(self),
            Code::Gpu(_) | Code::Host(_) => None,
        }
    }
}

impl DeviceLoops for GpuLauncher {
    fn record(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>> {
        match &self.code {
            Code::Host(_) => Err(Error::internal("the host's kernels cannot be recorded")),
            Code::Gpu(code) => code.notes(context),
        }
    }

    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: Box<dyn Stream>,
        predicate: Slice,
        body: Box<dyn Stream>,
    ) -> Result<()> {
        match &self.code {
            Code::Host(_) => Err(Error::internal("the host's kernels cannot be recorded")),
            Code::Gpu(code) => code.run_while(launch, &*condition, predicate, &*body),
        }
    }
}

impl SequenceLauncher for GpuLauncher {
    fn run(
        &self,
        sequence: &ThunkSequence,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool> {
        match &self.code {
            Code::Host(_) => Ok(false),
            Code::Gpu(code) => code.run_sequence(sequence, &|kernel| self.routine(kernel), context, buffers),
        }
    }
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
    let counter = drawn(routine, launch.context);
    steps_on_host(code, &routine.steps, (&scratch, counter), launch)
}

fn steps_on_host(
    code: &HostCode,
    steps: &[Step],
    (scratch, counter): (&[DeviceMemory], [u64; 2]),
    launch: &mut Launch<'_>,
) -> Result<()> {
    for step in steps {
        match step {
            Step::Copy { from, to } => {
                let (from, to) = (array(launch.thunk, *from)?.slice, array(launch.thunk, *to)?.slice);
                launch.buffers.copy(launch.context, from, to)?;
            }
            Step::Launch { function, blocks, arguments } => {
                let word = |word: &Word| match *word {
                    Word::Number(number) => Ok(number as u64),
                    Word::Counter(half) => counter.get(half).copied().ok_or_else(no_scratch),
                    Word::Scratch(number) => match scratch.get(number) {
                        Some(memory) => HostStream::address(memory, 0),
                        None => Err(no_scratch()),
                    },
                    Word::Array(number) => {
                        let Slice { allocation, offset, .. } = array(launch.thunk, number)?.slice;
                        HostStream::address(launch.buffers.memory(allocation)?, offset)
                    }
                };
                let words = arguments.iter().map(word).collect::<Result<Vec<u64>>>()?;
                code.launch(*function, *blocks, &words)?;
            }
            // The host has none of NVIDIA's libraries.
            Step::Library { otherwise, .. } => steps_on_host(code, otherwise, (scratch, counter), launch)?,
        }
    }
    Ok(())
}

/// What a routine draws from the device's counter, its low half first. What is drawn is drawn when the routine is sent.
pub(crate) fn drawn(routine: &Routine, context: &ExecutionContext<'_>) -> [u64; 2] {
    let counter = routine.draws.map_or(0, |delta| context.random.advance(delta));
    [counter as u64, (counter >> 64) as u64]
}

/// An array of a thunk: operands, then results.
pub(crate) fn array(thunk: &Thunk, number: usize) -> Result<&ArraySlice> {
    let mut arrays = thunk.operands.iter().chain(&thunk.results);
    arrays.nth(number).ok_or_else(|| Error::internal("an array that the thunk has not"))
}

/// The error for scratch memory that a routine does not have.
pub(crate) fn no_scratch() -> Error {
    Error::internal("scratch memory that is not there")
}
