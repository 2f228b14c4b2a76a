//! Runs a thunk sequence over a stream, thunk by thunk.

use std::fmt;

use xla_hlo::{Error, Module, Result, ResultExt};
use xla_passes::buffers::Slice;

use super::loops::can_be_recorded;
use super::sequence::Selector;
use super::{
    DeviceLoops, ExecutionBuffers, KernelRef, LibraryRef, Thunk, ThunkKind, ThunkSequence, run_custom_call,
    run_fallback,
};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Starts what a backend lowered.
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

    /// The ability to run loops on the device, if it has it.
    fn device_loops(&self) -> Option<&dyn DeviceLoops> {
        None
    }
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

/// Runs a sequence. Control flow is decided on the host, which waits for the device where it must see a predicate.
pub fn execute(
    module: &Module,
    sequence: &ThunkSequence,
    launcher: &dyn Launcher,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
) -> Result<()> {
    let mut run = Run { module, launcher, context, buffers };
    run.sequence(sequence)
}

struct Run<'a> {
    module: &'a Module,
    launcher: &'a dyn Launcher,
    context: &'a ExecutionContext<'a>,
    buffers: &'a mut ExecutionBuffers,
}

impl Run<'_> {
    fn sequence(&mut self, sequence: &ThunkSequence) -> Result<()> {
        for thunk in &sequence.thunks {
            let _span = tracing::trace_span!("thunk", name = %thunk.name, id = %thunk.id).entered();
            self.context.cancel.check().context(|| thunk.place())?;
            self.context.during(|| thunk.place(), || self.thunk(thunk))?;
        }
        Ok(())
    }

    fn thunk(&mut self, thunk: &Thunk) -> Result<()> {
        match &thunk.kind {
            ThunkKind::Kernel(kernel) => self.launcher.kernel(kernel, &mut self.launch(thunk)),
            ThunkKind::LibraryCall(call) => self.launcher.library_call(call, &mut self.launch(thunk)),
            ThunkKind::Copy => match (&thunk.operands[..], &thunk.results[..]) {
                ([from], [to]) => self.buffers.copy(self.context, from.slice, to.slice),
                _ => Err(Error::internal("a copy has one operand and one result")),
            },
            ThunkKind::While { condition, body, predicate, .. }
                if let Some(loops) = self.launcher.device_loops()
                    && can_be_recorded(condition)
                    && can_be_recorded(body) =>
            {
                let condition = self.recorded(loops, condition)?;
                let body = self.recorded(loops, body)?;
                self.context.announce(&|| thunk.place());
                loops.run_while(&mut self.launch(thunk), condition, *predicate, body)
            }
            ThunkKind::While { condition, body, predicate, trip_count: None } => loop {
                self.sequence(condition)?;
                if self.byte(*predicate)? == 0 {
                    return Ok(());
                }
                self.sequence(body)?;
            },
            ThunkKind::While { body, trip_count: Some(count), .. } => (0..*count).try_for_each(|_| self.sequence(body)),
            ThunkKind::Conditional { selector, slice, branches } => {
                let branch = match selector {
                    Selector::Predicate => usize::from(self.byte(*slice)? == 0),
                    Selector::Index => branch_of(self.word(*slice)?, branches.len()),
                };
                let branch = branches.get(branch).ok_or_else(|| Error::internal("a conditional lacks a branch"))?;
                self.sequence(branch)
            }
            ThunkKind::CustomCall => run_custom_call(self.module, thunk, self.context, self.buffers),
            ThunkKind::HostFallback => run_fallback(self.module, thunk, self.context, self.buffers),
        }
    }

    /// Runs a sequence on a stream that keeps it.
    fn recorded(&mut self, loops: &dyn DeviceLoops, sequence: &ThunkSequence) -> Result<Box<dyn Stream>> {
        let stream = loops.record()?;
        let context = ExecutionContext { stream: &*stream, ..*self.context };
        Run { module: self.module, launcher: self.launcher, context: &context, buffers: self.buffers }
            .sequence(sequence)?;
        Ok(stream)
    }

    fn launch<'b>(&'b mut self, thunk: &'b Thunk) -> Launch<'b> {
        Launch { thunk, context: self.context, buffers: self.buffers }
    }

    fn byte(&self, slice: Slice) -> Result<u8> {
        self.read(slice).map(|[byte]| byte)
    }

    fn word(&self, slice: Slice) -> Result<i32> {
        self.read(slice).map(i32::from_le_bytes)
    }

    fn read<const N: usize>(&self, slice: Slice) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.context.stream.copy_to_host(self.buffers.memory(slice.allocation)?, slice.offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// The branch of that index: the last one for indices that no branch has.
fn branch_of(index: i32, branches: usize) -> usize {
    let last = branches.saturating_sub(1);
    usize::try_from(index).map_or(last, |i| i.min(last))
}
