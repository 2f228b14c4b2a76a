//! Execution of a thunk sequence over streams, thunk by thunk.

use std::collections::HashMap;

use xla_hlo::{Error, Module, Result, ResultExt};
use xla_passes::buffers::Slice;

use super::sequence::{Selector, can_be_recorded};
use super::streams::SideStreams;
use super::{
    DeviceLoops, ExecutionBuffers, Launch, Launcher, SequenceLauncher, StreamId, StreamPool, Thunk, ThunkId, ThunkKind,
    ThunkSequence, run_custom_call, run_fallback,
};
use crate::executable::ExecutionContext;
use crate::executor::{Event, ProfilerRange, Stream};

/// Runs a sequence. The host evaluates control flow and waits for the device when it reads a predicate.
///
/// Stream 0 is the context's stream; `pool`, which must belong to this sequence, provides the others. If the context's
/// stream only records, all work is sent to it. When this function returns, even with an error, the context's stream is
/// ordered after all work on other streams, so that memory can be freed in its order.
pub fn execute(
    module: &Module,
    sequence: &ThunkSequence,
    launcher: &dyn Launcher,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
    pool: &StreamPool,
) -> Result<()> {
    if !pool.is_needed() || context.stream.is_recording() {
        return SequenceRun { module, launcher, context, side: None, buffers }.sequence(sequence, StreamId(0));
    }
    let mut side = pool.take(context)?;
    SequenceRun { module, launcher, context, side: Some(&side), buffers }.sequence(sequence, StreamId(0))?;
    side.are_joined();
    Ok(())
}

struct SequenceRun<'a> {
    module: &'a Module,
    launcher: &'a dyn Launcher,
    /// Context, with stream 0.
    context: &'a ExecutionContext<'a>,
    /// Other streams; `None` if all work is sent to the context's stream.
    side: Option<&'a SideStreams<'a>>,
    buffers: &'a mut ExecutionBuffers,
}

/// Events after thunks that other streams wait for; `None` until the thunk is sent.
type Events = HashMap<ThunkId, Option<Event>>;

impl<'a> SequenceRun<'a> {
    /// Runs a sequence whose own stream is `home`.
    fn sequence(&mut self, sequence: &ThunkSequence, home: StreamId) -> Result<()> {
        if let Some(sequences) = self.launcher.sequences() {
            let mut runs = sequence.thunks.chunk_by(are_launches);
            if runs.any(|run| run[0].kind.is_launch() && run.len() >= sequences.shortest_run()) {
                return self.runs(sequences, sequence, home);
            }
        }
        if self.side.is_none() || sequence.is_on_one_stream() {
            let context = self.on(home)?;
            return sequence.thunks.iter().try_for_each(|thunk| self.step(thunk, &context));
        }
        let home = self.on(home)?.stream;
        let waited_for = sequence.thunks.iter().flat_map(|thunk| &thunk.waits).chain(&sequence.joins);
        let mut events: Events = waited_for.map(|&id| (id, None)).collect();
        if !sequence.forks.is_empty() {
            let begin = home.record_event()?;
            sequence.forks.iter().try_for_each(|&fork| self.on(fork)?.stream.wait_for(&begin))?;
        }
        for thunk in &sequence.thunks {
            let context = self.on(thunk.stream)?;
            wait(context.stream, &thunk.waits, &events).context(|| thunk.place())?;
            self.step(thunk, &context)?;
            if let Some(event) = events.get_mut(&thunk.id) {
                *event = Some(context.stream.record_event()?);
            }
        }
        wait(home, &sequence.joins, &events)
    }

    /// Runs a sequence on its own stream only. Runs of launches between host steps are sent as one unit if the launcher
    /// accepts them.
    fn runs(&mut self, sequences: &dyn SequenceLauncher, sequence: &ThunkSequence, home: StreamId) -> Result<()> {
        let (context, module, launcher) = (self.on(home)?, self.module, self.launcher);
        let mut inner = SequenceRun { module, launcher, context: &context, side: None, buffers: self.buffers };
        for run in sequence.thunks.chunk_by(are_launches) {
            context.cancel.check()?;
            if !run[0].kind.is_launch() || !sequences.run(run, &context, inner.buffers)? {
                run.iter().try_for_each(|thunk| inner.step(thunk, &context))?;
            }
        }
        Ok(())
    }

    /// Returns the context with another stream.
    fn on(&self, stream: StreamId) -> Result<ExecutionContext<'a>> {
        match self.side {
            Some(side) if stream.0 > 0 => Ok(ExecutionContext { stream: side.get(stream)?, ..*self.context }),
            Some(_) | None => Ok(*self.context),
        }
    }

    fn step(&mut self, thunk: &Thunk, context: &ExecutionContext<'_>) -> Result<()> {
        let _span = tracing::trace_span!("thunk", name = %thunk.name, id = %thunk.id).entered();
        let _range = ProfilerRange::open(context.stream, &|| thunk.name.clone());
        context.cancel.check().context(|| thunk.place())?;
        context.during(|| thunk.place(), || self.thunk(thunk, context))
    }

    /// Runs a thunk on the context's stream.
    fn thunk(&mut self, thunk: &Thunk, context: &ExecutionContext<'_>) -> Result<()> {
        match &thunk.kind {
            ThunkKind::Kernel(kernel) => self.launcher.kernel(kernel, &mut self.launch(thunk, context)),
            ThunkKind::LibraryCall(call) => self.launcher.library_call(call, &mut self.launch(thunk, context)),
            ThunkKind::Copy => match (&thunk.operands[..], &thunk.results[..]) {
                ([from], [to]) => self.buffers.copy(context, from.slice, to.slice),
                _ => Err(Error::internal("a copy does not have one operand and one result")),
            },
            ThunkKind::While { condition, body, predicate, .. }
                if let Some(loops) = self.launcher.device_loops(context)
                    && [condition, body].iter().all(|part| can_be_recorded(part, loops.conditionals().is_some())) =>
            {
                let condition = self.recorded(loops, condition, context)?;
                let body = self.recorded(loops, body, context)?;
                context.announce(&|| thunk.place());
                loops.run_while(&mut self.launch(thunk, context), condition, *predicate, body)
            }
            ThunkKind::While { condition, body, predicate, trip_count: None } => loop {
                self.sequence(condition, thunk.stream)?;
                if self.byte(*predicate, context)? == 0 {
                    return Ok(());
                }
                self.sequence(body, thunk.stream)?;
            },
            ThunkKind::While { body, trip_count: Some(count), .. } => {
                (0..*count).try_for_each(|_| self.sequence(body, thunk.stream))
            }
            ThunkKind::Conditional { selector, slice, branches }
                if let Some(loops) = self.launcher.device_loops(context)
                    && let Some(conditionals) = loops.conditionals()
                    && branches.iter().all(|branch| can_be_recorded(branch, true)) =>
            {
                let recorded = branches.iter().map(|branch| self.recorded(loops, branch, context));
                let recorded = recorded.collect::<Result<_>>()?;
                context.announce(&|| thunk.place());
                conditionals.run_conditional(&mut self.launch(thunk, context), *selector, *slice, recorded)
            }
            ThunkKind::Conditional { selector, slice, branches } => {
                let branch = selector.branch(self.selector(*selector, *slice, context)?, branches.len());
                let branch = branches.get(branch).ok_or_else(|| Error::internal("a conditional lacks a branch"))?;
                self.sequence(branch, thunk.stream)
            }
            ThunkKind::Collective(library) => {
                let module = self.module;
                if library.is_some() && self.launcher.collective(module, &mut self.launch(thunk, context))? {
                    return Ok(());
                }
                self.launcher.before_host_wait(context)?;
                run_fallback(module, thunk, context, self.buffers)
            }
            ThunkKind::CustomCall => {
                self.launcher.before_host_wait(context)?;
                run_custom_call(self.module, thunk, context, self.buffers)
            }
            ThunkKind::HostFallback => {
                self.launcher.before_host_wait(context)?;
                run_fallback(self.module, thunk, context, self.buffers)
            }
        }
    }

    /// Runs a sequence on a recording stream and returns the recording.
    fn recorded(
        &mut self,
        loops: &dyn DeviceLoops,
        sequence: &ThunkSequence,
        context: &ExecutionContext<'_>,
    ) -> Result<Box<dyn Stream>> {
        let stream = loops.record(context)?;
        let context = ExecutionContext { stream: &*stream, ..*context };
        SequenceRun {
            module: self.module,
            launcher: self.launcher,
            context: &context,
            side: None,
            buffers: self.buffers,
        }
        .sequence(sequence, StreamId(0))?;
        Ok(stream)
    }

    fn launch<'b>(&'b mut self, thunk: &'b Thunk, context: &'b ExecutionContext<'b>) -> Launch<'b> {
        Launch { thunk, context, buffers: self.buffers }
    }

    fn byte(&self, slice: Slice, context: &ExecutionContext<'_>) -> Result<u8> {
        self.read(slice, context).map(|[byte]| byte)
    }

    /// Reads the bytes of a selector; a predicate has only the first one.
    fn selector(&self, selector: Selector, slice: Slice, context: &ExecutionContext<'_>) -> Result<[u8; 4]> {
        match selector {
            Selector::Predicate => self.byte(slice, context).map(|byte| [byte, 0, 0, 0]),
            Selector::Index => self.read(slice, context),
        }
    }

    fn read<const N: usize>(&self, slice: Slice, context: &ExecutionContext<'_>) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.launcher.before_host_wait(context)?;
        context.stream.copy_to_host(self.buffers.memory(slice.allocation)?, slice.offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// Makes a stream wait for thunks of other streams.
fn wait(stream: &dyn Stream, waits: &[ThunkId], events: &Events) -> Result<()> {
    waits.iter().try_for_each(|id| match events.get(id) {
        Some(Some(event)) => stream.wait_for(event),
        Some(None) | None => Err(Error::internal(format!("a stream waits for {id}, which was not sent yet"))),
    })
}

/// Whether two consecutive thunks are both launches.
fn are_launches(one: &Thunk, next: &Thunk) -> bool {
    one.kind.is_launch() && next.kind.is_launch()
}
