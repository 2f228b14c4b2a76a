//! Streams beyond the one a program is launched on, kept from one execution to the next.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use xla_hlo::{Error, Result};

use super::super::{StreamId, ThunkSequence};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Streams of a program's devices. Executions at the same time have streams of their own; what one gives back, the next one takes.
#[derive(Debug, Default)]
pub struct StreamPool {
    /// How many streams an execution needs beyond its first.
    count: usize,
    /// By number of the device.
    free: Mutex<HashMap<usize, Vec<Box<dyn Stream>>>>,
}

impl StreamPool {
    /// A pool for that program, with no stream in it yet.
    pub fn new(sequence: &ThunkSequence) -> StreamPool {
        let most = sequence.walk().map(|thunk| thunk.stream.0).max();
        StreamPool { count: most.unwrap_or(0) as usize, free: Mutex::default() }
    }

    /// Whether the program uses more than one stream.
    pub fn is_needed(&self) -> bool {
        self.count > 0
    }

    /// Streams for one execution, made where there are not enough.
    pub(in super::super) fn take(&self, context: &ExecutionContext<'_>) -> Result<SideStreams> {
        let ordinal = context.executor.description().ordinal;
        let mut streams = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let free = free.entry(ordinal).or_default();
            free.split_off(free.len().saturating_sub(self.count))
        };
        while streams.len() < self.count {
            streams.push(context.executor.create_stream()?);
        }
        Ok(SideStreams { ordinal, streams })
    }

    /// Takes streams back for another execution.
    pub(in super::super) fn give_back(&self, streams: SideStreams) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.entry(streams.ordinal).or_default().extend(streams.streams);
    }
}

/// The streams of one execution beyond its first, which is number 0.
#[derive(Debug)]
pub(in super::super) struct SideStreams {
    ordinal: usize,
    streams: Vec<Box<dyn Stream>>,
}

impl SideStreams {
    /// The stream of that number, from 1 on.
    pub fn get(&self, id: StreamId) -> Result<&dyn Stream> {
        let stream = (id.0 as usize).checked_sub(1).and_then(|i| self.streams.get(i));
        stream.map(|stream| &**stream).ok_or_else(|| Error::internal(format!("there is no stream {}", id.0)))
    }

    /// Lets `stream` wait for everything that these were sent, so that memory can be given back in its order. Errors that they
    /// have not told become those of `stream`.
    pub fn join_into(&self, stream: &dyn Stream) {
        for side in &self.streams {
            // This is done when a program has failed already, which is what its caller will be told.
            drop(side.record_event().and_then(|event| stream.wait_for(&event)));
        }
    }
}
