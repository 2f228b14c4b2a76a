//! Loops that the device runs by itself: their steps are recorded once and handed over.

use xla_hlo::Result;
use xla_passes::buffers::Slice;

use super::{Launch, ThunkKind, ThunkSequence};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Optional ability of a [`Launcher`](super::Launcher): loops whose condition the device itself looks at.
///
/// Without it, the host runs each iteration's thunks and waits for the predicate in between. With it, loops of kernels,
/// library calls, copies and such loops are recorded: their thunks run once, on a stream that only takes notes.
pub trait DeviceLoops {
    /// A stream that keeps what is sent to it, for [`DeviceLoops::run_while`] on the stream of `context`, which may
    /// itself be recording. Memory given to it stays alive with it; copies from and to the host, and events, are
    /// errors.
    fn record(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>>;

    /// Sends a loop to the launch's stream, which may itself be recording: what `condition` recorded, then, while the
    /// byte at `predicate` is 1, what `body` recorded and `condition` again.
    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: Box<dyn Stream>,
        predicate: Slice,
        body: Box<dyn Stream>,
    ) -> Result<()>;
}

/// Whether a device with [`DeviceLoops`] can run a sequence without the host: from a recording, which is one stream.
pub(super) fn can_be_recorded(sequence: &ThunkSequence) -> bool {
    sequence.is_on_one_stream()
        && sequence.thunks.iter().all(|thunk| match &thunk.kind {
            // What has effects, such as drawing random numbers, is sent anew each time.
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => !thunk.has_effects,
            ThunkKind::While { condition, body, .. } => can_be_recorded(condition) && can_be_recorded(body),
            ThunkKind::Conditional { .. } | ThunkKind::CustomCall | ThunkKind::HostFallback => false,
        })
}
