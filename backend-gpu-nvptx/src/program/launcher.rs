//! Launcher: runs a thunk's command sequence with the addresses of its arrays, on a GPU or emulated.

use std::fmt;
use std::sync::Arc;

use xla_hlo::eval::RandomState;
use xla_hlo::{Error, Module, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{
    ArraySlice, DeviceConditionals, DeviceLoops, ExecutionBuffers, KernelRef, Launch, Launcher, LibraryRef, Selector,
    SequenceLauncher, Thunk,
};
use xla_service::{ExecutionContext, LogicalDevice, Stream};

use crate::cuda::driver::Driver;
use crate::program::commands::CommandSequence;
use crate::program::serialized::DeviceProgram;

/// Minimum number of thunks of a run that becomes a graph.
const WORTH_A_GRAPH: usize = 4;

/// Code of a program, ready to run.
pub(crate) trait DeviceCode: Send + Sync + fmt::Debug {
    /// Sends the commands of a sequence to the launch's stream.
    fn run(&self, commands: &CommandSequence, launch: &mut Launch<'_>) -> Result<()>;

    /// Executes a collective together with the other devices of the launch. Returns `false` if the service should.
    fn collective(&self, module: &Module, launch: &mut Launch<'_>) -> Result<bool> {
        let _ = (module, launch);
        Ok(false)
    }

    /// Waits until the collectives that a run has sent are complete.
    fn before_host_wait(&self, context: &ExecutionContext<'_>, device: &LogicalDevice) -> Result<()> {
        let _ = (context, device);
        Ok(())
    }

    /// Waits until the collectives of a run are complete or aborted, after its last thunk was sent or has failed with
    /// this error.
    fn finish(&self, context: &ExecutionContext<'_>, device: &LogicalDevice, error: Option<&Error>) -> Result<()> {
        let _ = (context, device, error);
        Ok(())
    }

    /// Returns the code if its sequences and loops can become CUDA graphs.
    fn graphs(&self) -> Option<&dyn GraphCode> {
        None
    }
}

/// Code whose sequences and loops become CUDA graphs.
pub(crate) trait GraphCode {
    /// Sends a run of launches as one graph, or adds it to the capture of the context's stream. `lowered` returns
    /// commands by the index of a kernel or library call.
    fn run_thunks<'a>(
        &self,
        thunks: &[Thunk],
        lowered: &dyn Fn(u32) -> Result<&'a CommandSequence>,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool>;

    /// Returns a stream that captures work instead of the context's stream.
    fn capture(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>>;

    /// Sends a loop to the launch's stream. The device reads the predicate without the host.
    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: &dyn Stream,
        predicate: Slice,
        body: &dyn Stream,
    ) -> Result<()>;

    /// Sends a conditional to the launch's stream. The device reads the selector without the host.
    fn run_conditional(
        &self,
        launch: &mut Launch<'_>,
        selector: Selector,
        slice: Slice,
        branches: &[Box<dyn Stream>],
    ) -> Result<()>;
}

/// Launcher of the command sequences of a program.
#[derive(Debug)]
pub(crate) struct GpuLauncher {
    device: Arc<DeviceProgram>,
    code: Box<dyn DeviceCode>,
}

impl GpuLauncher {
    pub fn new(device: Arc<DeviceProgram>, code: Box<dyn DeviceCode>) -> GpuLauncher {
        GpuLauncher { device, code }
    }

    /// Returns the commands of the kernel or library call with this index.
    fn lowered(&self, index: u32) -> Result<&CommandSequence> {
        let commands = self.device.command_sequences.get(index as usize);
        commands.ok_or_else(|| {
            Error::internal(format!("the program has no command sequence {index}: its thunk was not lowered"))
        })
    }

    /// Waits until the collectives of a run of several devices, which may have failed on this device, are complete or
    /// aborted.
    pub fn finish(&self, context: &ExecutionContext<'_>, error: Option<&Error>) -> Result<()> {
        context.logical_device.map_or(Ok(()), |device| self.code.finish(context, device, error))
    }

    fn graphs(&self) -> Result<&dyn GraphCode> {
        self.code.graphs().ok_or_else(|| Error::internal("the commands of an emulated GPU cannot be captured"))
    }
}

impl Launcher for GpuLauncher {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        self.code.run(self.lowered(kernel.index)?, launch)
    }

    fn library_call(&self, call: &LibraryRef, launch: &mut Launch<'_>) -> Result<()> {
        self.code.run(self.lowered(call.index)?, launch)
    }

    fn collective(&self, module: &Module, launch: &mut Launch<'_>) -> Result<bool> {
        self.code.collective(module, launch)
    }

    fn before_host_wait(&self, context: &ExecutionContext<'_>) -> Result<()> {
        context.logical_device.map_or(Ok(()), |device| self.code.before_host_wait(context, device))
    }

    fn sequences(&self) -> Option<&dyn SequenceLauncher> {
        self.code.graphs().map(|_| self as &dyn SequenceLauncher)
    }

    fn device_loops(&self, context: &ExecutionContext<'_>) -> Option<&dyn DeviceLoops> {
        let has_loops = self.code.graphs().is_some() && Driver::get().is_ok_and(Driver::has_loops);
        // A graph that was sent cannot be cancelled.
        (has_loops && !context.cancel.can_cancel()).then_some(self as &dyn DeviceLoops)
    }
}

impl DeviceLoops for GpuLauncher {
    fn record(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>> {
        self.graphs()?.capture(context)
    }

    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: Box<dyn Stream>,
        predicate: Slice,
        body: Box<dyn Stream>,
    ) -> Result<()> {
        self.graphs()?.run_while(launch, &*condition, predicate, &*body)
    }

    fn conditionals(&self) -> Option<&dyn DeviceConditionals> {
        Some(self)
    }
}

impl DeviceConditionals for GpuLauncher {
    fn run_conditional(
        &self,
        launch: &mut Launch<'_>,
        selector: Selector,
        slice: Slice,
        branches: Vec<Box<dyn Stream>>,
    ) -> Result<()> {
        self.graphs()?.run_conditional(launch, selector, slice, &branches)
    }
}

impl SequenceLauncher for GpuLauncher {
    fn shortest_run(&self) -> usize {
        WORTH_A_GRAPH
    }

    fn run(&self, thunks: &[Thunk], context: &ExecutionContext<'_>, buffers: &mut ExecutionBuffers) -> Result<bool> {
        self.graphs()?.run_thunks(thunks, &|index| self.lowered(index), context, buffers)
    }
}

/// Returns the device's random counter for a sequence, low half first, and advances it.
pub(crate) fn next_rng_counter(commands: &CommandSequence, random: &RandomState) -> [u64; 2] {
    let counter = commands.rng_delta.map_or(0, |delta| random.advance(delta));
    [counter as u64, (counter >> 64) as u64]
}

/// Returns an array of a thunk by its number: operands, then results.
pub(crate) fn array(thunk: &Thunk, number: usize) -> Result<&ArraySlice> {
    let mut arrays = thunk.operands.iter().chain(&thunk.results);
    arrays.nth(number).ok_or_else(|| Error::internal(format!("thunk {} has no array {number}", thunk.name)))
}

/// Returns the error for scratch memory that a sequence does not have.
pub(crate) fn no_scratch() -> Error {
    Error::internal("the command sequence lacks the scratch memory of an argument")
}
