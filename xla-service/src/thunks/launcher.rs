//! Launcher of a backend: launches kernels, library calls, sequences and device loops.

use std::fmt;

use xla_hlo::{Module, Result};
use xla_passes::buffers::Slice;

use super::{ExecutionBuffers, KernelRef, LibraryRef, Selector, Thunk};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Launcher of the kernels and library calls that a backend lowered.
///
/// # Contract
///
/// - The launch may be asynchronous on the context's stream, but the work must be in the stream when the method
///   returns.
/// - `launch.thunk` contains the slices. `launch.buffers` provides their memory; use [`ExecutionBuffers::memory_mut`]
///   for results. The slices have the sizes that the lowering received.
pub trait Launcher: Send + Sync + fmt::Debug {
    /// Launches a kernel.
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()>;

    /// Calls a library.
    fn library_call(&self, call: &LibraryRef, launch: &mut Launch<'_>) -> Result<()>;

    /// Executes a collective that was lowered to [`Lowered::Collective`](super::Lowered::Collective), together with the
    /// other devices of the launch. Returns `false`, without effect and on all members, if the service should execute
    /// it.
    fn collective(&self, module: &Module, launch: &mut Launch<'_>) -> Result<bool> {
        let _ = (module, launch);
        Ok(false)
    }

    /// Waits until the context's device does not wait for other devices; checks for errors and cancellation meanwhile.
    /// Called before the host waits for the context's stream, which cannot be interrupted.
    fn before_host_wait(&self, context: &ExecutionContext<'_>) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Returns the ability to launch several thunks as one unit, if the backend has it.
    fn sequences(&self) -> Option<&dyn SequenceLauncher> {
        None
    }

    /// Returns the ability to run loops on the device, if the backend has it for this run. `None` for cancellable runs
    /// if the device cannot poll the context's token.
    fn device_loops(&self, context: &ExecutionContext<'_>) -> Option<&dyn DeviceLoops> {
        let _ = context;
        None
    }
}

/// Optional ability of a [`Launcher`]: launches sequences of kernels, library calls and copies as one unit.
///
/// For devices with expensive launches. The launcher keeps the launches of such a sequence (a graph) and starts all of
/// them at once each time the sequence is executed: as a program, as the body of a loop, or between two host steps.
pub trait SequenceLauncher {
    /// Returns the minimum number of thunks for which a single launch pays off.
    fn shortest_run(&self) -> usize;

    /// Sends consecutive thunks of a sequence to the context's stream as one unit. Returns `false`, without effect, if
    /// they should be sent one by one. Streams and waits of the thunks are one valid order; the slices determine the
    /// required order.
    fn run(&self, thunks: &[Thunk], context: &ExecutionContext<'_>, buffers: &mut ExecutionBuffers) -> Result<bool>;
}

/// Optional ability of a [`Launcher`]: loops whose predicate the device tests.
///
/// Without it, the host runs the thunks of each iteration and waits for the predicate. With it, loops that contain only
/// kernels, library calls, copies and such loops are recorded: their thunks run once, on a recording stream.
pub trait DeviceLoops {
    /// Creates a recording stream for [`DeviceLoops::run_while`] on the stream of `context`, which may itself be
    /// recording. The recording keeps memory that it uses alive; copies from and to the host, and events, are errors.
    fn record(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>>;

    /// Sends a loop to the launch's stream, which may itself be recording: runs the recording `condition`; while the
    /// byte at `predicate` is 1, runs `body` and `condition` again.
    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: Box<dyn Stream>,
        predicate: Slice,
        body: Box<dyn Stream>,
    ) -> Result<()>;

    /// Returns the ability to run conditionals on the device, if the backend has it.
    fn conditionals(&self) -> Option<&dyn DeviceConditionals> {
        None
    }
}

/// Optional ability in addition to [`DeviceLoops`]: conditionals whose selector the device reads.
///
/// Without it, the host waits for the selector, and runs loops that contain a conditional.
pub trait DeviceConditionals {
    /// Sends a conditional to the launch's stream, which may itself be recording. It runs the recording of the branch
    /// that [`Selector::branch`] selects for the bytes at `slice`.
    fn run_conditional(
        &self,
        launch: &mut Launch<'_>,
        selector: Selector,
        slice: Slice,
        branches: Vec<Box<dyn Stream>>,
    ) -> Result<()>;
}

/// Launch of one thunk.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Thunk to launch.
    pub thunk: &'a Thunk,
    /// Device, stream and layouts.
    pub context: &'a ExecutionContext<'a>,
    /// Memory of each allocation.
    pub buffers: &'a mut ExecutionBuffers,
}
