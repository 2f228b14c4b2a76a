//! Stream pool: streams in addition to the launch stream, kept between executions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use xla_hlo::{Error, Result};

use super::super::{StreamId, ThunkSequence};
use crate::executable::ExecutionContext;
use crate::executor::Stream;

/// Pool of streams for each device of a program. Concurrent executions use different streams; released streams are
/// reused.
#[derive(Debug, Default)]
pub struct StreamPool {
    /// Number of streams of an execution, without its launch stream.
    count: usize,
    /// Free streams by device number.
    free: Mutex<HashMap<usize, Vec<Box<dyn Stream>>>>,
}

impl StreamPool {
    /// Creates an empty pool for a program.
    pub fn new(sequence: &ThunkSequence) -> StreamPool {
        let most = sequence.walk().map(|thunk| thunk.stream.0).max();
        StreamPool { count: most.unwrap_or(0) as usize, free: Mutex::default() }
    }

    /// Whether the program uses more than one stream.
    pub fn is_needed(&self) -> bool {
        self.count > 0
    }

    /// Takes the streams for one execution from the pool, and creates missing ones.
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

/// Streams of one execution, without its launch stream (number 0). When dropped, they are joined into the launch
/// stream, even if the execution ended early, and return to the pool.
#[derive(Debug)]
pub(in super::super) struct SideStreams<'a> {
    pool: &'a StreamPool,
    ordinal: usize,
    streams: Vec<Box<dyn Stream>>,
    home: &'a dyn Stream,
    are_joined: bool,
}

impl SideStreams<'_> {
    /// Returns the stream with this number, starting at 1.
    pub fn get(&self, id: StreamId) -> Result<&dyn Stream> {
        let stream = (id.0 as usize).checked_sub(1).and_then(|i| self.streams.get(i));
        stream.map(|stream| &**stream).ok_or_else(|| Error::internal(format!("stream {} does not exist", id.0)))
    }

    /// Marks the streams as joined: the launch stream waits for all of them already.
    pub fn are_joined(&mut self) {
        self.are_joined = true;
    }
}

impl Drop for SideStreams<'_> {
    fn drop(&mut self) {
        for side in self.streams.iter().filter(|_| !self.are_joined) {
            // The caller receives the error of the execution, which has failed already. An error of the joined work is
            // reported by the launch stream.
            drop(side.record_event().and_then(|event| self.home.wait_for(&event)));
        }
        let streams = std::mem::take(&mut self.streams);
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.entry(self.ordinal).or_default().extend(streams);
    }
}
