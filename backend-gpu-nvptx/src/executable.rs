//! The executable: thunks, and what launches their routines.

use std::sync::Arc;

use xla_hlo::{Error, Module, Result};
use xla_service::thunks::{ArraySlice, KernelRef, Launch, Launcher, LibraryRef, ThunkExecutable, ThunkSequence};
use xla_service::{
    Argument, CostAnalysis, DeviceMemory, Executable, ExecutionContext, MemoryAnalysis, OptimizedModule, Signature,
};

use crate::compiler::Compiled;
use crate::device::{Routine, Step, Word};
use crate::host::HostCode;

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    thunks: ThunkExecutable,
    texts: Vec<(String, String)>,
}

impl GpuExecutable {
    pub fn new(module: OptimizedModule, compiled: Compiled) -> Result<GpuExecutable> {
        let Compiled { program, routines, code } = compiled;
        let launcher = GpuLauncher { routines, code: HostCode::load(&code.image)? };
        Ok(GpuExecutable { thunks: ThunkExecutable::new(module, program, Arc::new(launcher)), texts: code.texts })
    }
}

impl Executable for GpuExecutable {
    fn module(&self) -> &Module {
        self.thunks.module()
    }

    fn signature(&self) -> &Signature {
        self.thunks.signature()
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        self.thunks.execute(context, arguments)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        self.thunks.memory_analysis()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        self.thunks.cost_analysis()
    }

    fn thunks(&self) -> Option<&ThunkSequence> {
        self.thunks.thunks()
    }

    fn dumps(&self) -> Vec<(String, String)> {
        let mut dumps = self.thunks.dumps();
        dumps.extend(self.texts.iter().cloned());
        dumps
    }
}

/// Starts what was lowered.
#[derive(Debug)]
struct GpuLauncher {
    /// By [`KernelRef::index`].
    routines: Vec<Routine>,
    code: HostCode,
}

impl Launcher for GpuLauncher {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        let routine = self.routines.get(kernel.index as usize);
        let routine = routine.ok_or_else(|| Error::internal("a kernel that was never lowered"))?;
        // Dropped when all steps are in the stream; memory is given back in its order.
        let scratch = routine.scratch.iter().map(|&bytes| launch.context.executor.allocate(bytes));
        let scratch = scratch.collect::<Result<Vec<_>>>()?;
        for step in &routine.steps {
            match step {
                Step::Copy { from, to } => {
                    let (from, to) = (array(launch, *from)?.slice, array(launch, *to)?.slice);
                    launch.buffers.copy(launch.context, from, to)?;
                }
                Step::Launch { function, blocks, arguments } => {
                    let words = arguments.iter().map(|&word| self.word(launch, &scratch, word));
                    let words = words.collect::<Result<Vec<u64>>>()?;
                    self.code.launch(*function, *blocks, &words)?;
                }
            }
        }
        Ok(())
    }

    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("library call {} was never lowered", call.name)))
    }
}

impl GpuLauncher {
    fn word(&self, launch: &Launch<'_>, scratch: &[DeviceMemory], word: Word) -> Result<u64> {
        match word {
            Word::Number(number) => Ok(number as u64),
            Word::Scratch(number) => {
                let memory = scratch.get(number).ok_or_else(|| Error::internal("scratch memory that is not there"))?;
                self.code.address(memory, 0)
            }
            Word::Array(number) => {
                let slice = array(launch, number)?.slice;
                self.code.address(launch.buffers.memory(slice.allocation)?, slice.offset)
            }
        }
    }
}

/// An array of the thunk: operands, then results.
fn array<'a>(launch: &'a Launch<'_>, number: usize) -> Result<&'a ArraySlice> {
    let mut arrays = launch.thunk.operands.iter().chain(&launch.thunk.results);
    arrays.nth(number).ok_or_else(|| Error::internal("an array that the thunk has not"))
}
