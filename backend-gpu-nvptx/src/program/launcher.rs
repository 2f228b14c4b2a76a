//! Launcher: runs a thunk's command sequence with the addresses of its arrays, on a GPU or emulated.

use std::fmt;
use std::sync::Arc;

use xla_hlo::eval::RandomState;
use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{
    ArraySlice, DeviceConditionals, DeviceLoops, ExecutionBuffers, KernelRef, Launch, Launcher, LibraryRef, Selector,
    SequenceLauncher, Thunk,
};
use xla_service::{ExecutionContext, Stream};

use crate::cuda::driver::Driver;
use crate::program::commands::CommandSequence;
use crate::program::serialized::DeviceProgram;

/// Thunks from which on a run is kept as a graph.
const WORTH_A_GRAPH: usize = 4;

/// A program's code, where it runs.
pub(crate) trait DeviceCode: Send + Sync + fmt::Debug {
    /// Sends the commands of a sequence to the launch's stream.
    fn run(&self, commands: &CommandSequence, launch: &mut Launch<'_>) -> Result<()>;

    /// The code, if CUDA graphs may be made of its sequences and loops.
    fn graphs(&self) -> Option<&dyn GraphCode> {
        None
    }
}

/// Code whose sequences and loops become CUDA graphs.
pub(crate) trait GraphCode {
    /// Sends a run of launches as one graph, or adds it to what the context's stream captures. `lowered` finds commands
    /// by the index of a kernel or library call.
    fn run_thunks<'a>(
        &self,
        thunks: &[Thunk],
        lowered: &dyn Fn(u32) -> Result<&'a CommandSequence>,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool>;

    /// A stream that captures instead of the context's.
    fn capture(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>>;

    /// Sends a loop whose predicate the device itself looks at to the launch's stream.
    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: &dyn Stream,
        predicate: Slice,
        body: &dyn Stream,
    ) -> Result<()>;

    /// Sends a conditional whose selector the device itself looks at to the launch's stream.
    fn run_conditional(
        &self,
        launch: &mut Launch<'_>,
        selector: Selector,
        slice: Slice,
        branches: &[Box<dyn Stream>],
    ) -> Result<()>;
}

/// Launches the command sequences of a program.
#[derive(Debug)]
pub(crate) struct GpuLauncher {
    device: Arc<DeviceProgram>,
    code: Box<dyn DeviceCode>,
}

impl GpuLauncher {
    pub fn new(device: Arc<DeviceProgram>, code: Box<dyn DeviceCode>) -> GpuLauncher {
        GpuLauncher { device, code }
    }

    /// The commands of a kernel or library call of that index.
    fn lowered(&self, index: u32) -> Result<&CommandSequence> {
        let commands = self.device.command_sequences.get(index as usize);
        commands.ok_or_else(|| Error::internal("a thunk that was never lowered"))
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

    fn sequences(&self) -> Option<&dyn SequenceLauncher> {
        self.code.graphs().map(|_| self as &dyn SequenceLauncher)
    }

    fn device_loops(&self, context: &ExecutionContext<'_>) -> Option<&dyn DeviceLoops> {
        let has_loops = self.code.graphs().is_some() && Driver::get().is_ok_and(Driver::has_loops);
        // A graph that was sent cannot be stopped.
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

/// The device's random counter for a sequence, low half first, which is advanced when the sequence is sent.
pub(crate) fn next_rng_counter(commands: &CommandSequence, random: &RandomState) -> [u64; 2] {
    let counter = commands.rng_delta.map_or(0, |delta| random.advance(delta));
    [counter as u64, (counter >> 64) as u64]
}

/// An array of a thunk: operands, then results.
pub(crate) fn array(thunk: &Thunk, number: usize) -> Result<&ArraySlice> {
    let mut arrays = thunk.operands.iter().chain(&thunk.results);
    arrays.nth(number).ok_or_else(|| Error::internal("the thunk has no such array"))
}

/// The error for scratch memory that a sequence does not have.
pub(crate) fn no_scratch() -> Error {
    Error::internal("the command sequence has no such scratch memory")
}
