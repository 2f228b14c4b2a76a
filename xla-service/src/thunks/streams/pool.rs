//! Stream pool: streams beyond the one a program is launched on, kept between executions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use xla_hlo::{Error, Result};

use super::super::{StreamId, ThunkSequence};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Streams of a program's devices. Executions at the same time have streams of their own; released streams are reused.
#[derive(Debug, Default)]
pub struct StreamPool {
    /// Number of streams of an execution beyond its first.
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
    pub(in super::super) fn take<'a>(&'a self, context: &ExecutionContext<'a>) -> Result<SideStreams<'a>> {
        let ordinal = context.executor.description().ordinal;
        let mut streams = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let free = free.entry(ordinal).or_default();
            free.split_off(free.len().saturating_sub(self.count))
        };
        while streams.len() < self.count {
            streams.push(context.executor.create_stream()?);
        }
        Ok(SideStreams { pool: self, ordinal, streams, home: context.stream, are_joined: false })
    }
}

/// The streams of one execution beyond its first, which is number 0. They go back to the pool when dropped; what they
/// were sent is joined into the first one before, also where an execution ends early.
#[derive(Debug)]
pub(in super::super) struct SideStreams<'a> {
    pool: &'a StreamPool,
    ordinal: usize,
    streams: Vec<Box<dyn Stream>>,
    home: &'a dyn Stream,
    are_joined: bool,
}

impl SideStreams<'_> {
    /// The stream of that number, from 1 on.
    pub fn get(&self, id: StreamId) -> Result<&dyn Stream> {
        let stream = (id.0 as usize).checked_sub(1).and_then(|i| self.streams.get(i));
        stream.map(|stream| &**stream).ok_or_else(|| Error::internal(format!("there is no stream {}", id.0)))
    }

    /// Says that the first stream waits for all of them already.
    pub fn are_joined(&mut self) {
        self.are_joined = true;
    }
}

impl Drop for SideStreams<'_> {
    fn drop(&mut self) {
        for side in self.streams.iter().filter(|_| !self.are_joined) {
            // The caller gets the error of the execution, which has failed already. A failure here becomes an error of
            // the first stream.
            drop(side.record_event().and_then(|event| self.home.wait_for(&event)));
        }
        let streams = std::mem::take(&mut self.streams);
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.entry(self.ordinal).or_default().extend(streams);
    }
}
