//! A backend's launcher: starts kernels, library calls, whole sequences and loops on the device.

use std::fmt;

use xla_hlo::Result;
use xla_passes::buffers::Slice;

use super::{ExecutionBuffers, KernelRef, LibraryRef, Selector, Thunk};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Starts kernels and library calls that a backend lowered.
///
/// # Contract
///
/// - The launch may be asynchronous on the context's stream; it must not return before the work is in the stream.
/// - `launch.thunk` has the slices; their memories come out of `launch.buffers`, results with
///   [`ExecutionBuffers::memory_mut`]. They have the sizes that the lowering was told.
pub trait Launcher: Send + Sync + fmt::Debug {
    /// Launches a kernel.
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()>;

    /// Calls a library.
    fn library_call(&self, call: &LibraryRef, launch: &mut Launch<'_>) -> Result<()>;

    /// The ability to take a run of thunks at once, if it has it.
    fn sequences(&self) -> Option<&dyn SequenceLauncher> {
        None
    }

    /// The ability to run loops on the device, if it has it for such runs. A device that cannot look at the context's
    /// token returns none for runs that can be cancelled.
    fn device_loops(&self, context: &ExecutionContext<'_>) -> Option<&dyn DeviceLoops> {
        let _ = context;
        None
    }
}

/// Optional ability of a [`Launcher`]: runs of kernels, library calls and copies that are launched as one.
///
/// A device whose launches are expensive keeps the launches of such a run (a graph), and starts all of it at once
/// whenever it comes again: as a program, as the body of a loop, between two steps of the host.
pub trait SequenceLauncher {
    /// The number of thunks from which on it is worth it.
    fn shortest_run(&self) -> usize;

    /// Sends a run of thunks, which follow each other in a sequence, to the context's stream, or returns `false` and
    /// does nothing, where it is better sent thunk by thunk. Their streams and waits are one way to run them, and the
    /// slices say what must be in order.
    fn run(&self, thunks: &[Thunk], context: &ExecutionContext<'_>, buffers: &mut ExecutionBuffers) -> Result<bool>;
}

/// Optional ability of a [`Launcher`]: loops whose condition the device itself looks at.
///
/// Without it, the host runs each iteration's thunks and waits for the predicate in between. With it, loops of kernels,
/// library calls, copies and such loops are recorded: their thunks run once, on a stream that only records.
pub trait DeviceLoops {
    /// A stream that records the work sent to it, for [`DeviceLoops::run_while`] on the stream of `context`, which may
    /// itself be recording. Memory given to it stays alive with it; copies from and to the host, and events, are
    /// errors.
    fn record(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>>;

    /// Sends a loop to the launch's stream, which may itself be recording: the recording of `condition`, then, while
    /// the byte at `predicate` is 1, those of `body` and `condition` again.
    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: Box<dyn Stream>,
        predicate: Slice,
        body: Box<dyn Stream>,
    ) -> Result<()>;

    /// The ability to choose the branch of a conditional on the device as well, if it has it.
    fn conditionals(&self) -> Option<&dyn DeviceConditionals> {
        None
    }
}

/// Optional ability beside [`DeviceLoops`]: conditionals whose selector the device itself looks at.
///
/// Without it, the host waits for the selector, and a loop with a conditional in it is run by the host.
pub trait DeviceConditionals {
    /// Sends a conditional to the launch's stream, which may itself be recording: the recording of the branch that the
    /// bytes at `slice` choose by [`Selector::branch`].
    fn run_conditional(
        &self,
        launch: &mut Launch<'_>,
        selector: Selector,
        slice: Slice,
        branches: Vec<Box<dyn Stream>>,
    ) -> Result<()>;
}

/// One launch: on what, with what.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The thunk.
    pub thunk: &'a Thunk,
    /// Device, stream and layouts.
    pub context: &'a ExecutionContext<'a>,
    /// Memory by allocation.
    pub buffers: &'a mut ExecutionBuffers,
}
