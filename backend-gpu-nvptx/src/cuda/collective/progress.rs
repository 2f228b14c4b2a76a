//! Progress of the streams of a collective's members.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xla_hlo::Result;

use crate::cuda::stream::queue::QueueMark;

/// Points in the streams before and after a collective, by rank.
#[derive(Debug)]
pub(crate) struct Progress {
    begins: Vec<QueueMark>,
    ends: Vec<Arc<QueueMark>>,
    /// Whether the end of a rank was reached before an abort, by rank.
    is_complete: Vec<AtomicBool>,
}

impl Progress {
    /// Creates the record of work that was sent between marks of each stream.
    pub fn new(begins: Vec<QueueMark>, ends: Vec<Arc<QueueMark>>) -> Progress {
        let is_complete = ends.iter().map(|_| AtomicBool::new(false)).collect();
        Progress { begins, ends, is_complete }
    }

    /// Whether the streams of all ranks have executed their earlier work. From then on, only NCCL and the links between
    /// the devices determine how long the work takes.
    pub fn has_begun(&self) -> Result<bool> {
        for begin in &self.begins {
            if !begin.is_reached()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the stream of a rank has reached the end of the work, possibly because of an abort.
    pub fn is_reached(&self, rank: usize) -> Result<bool> {
        self.ends[rank].is_reached()
    }

    /// Records the ranks whose ends are reached. Called before an abort, which also makes streams reach them.
    pub fn record_complete(&self) {
        for (end, is_complete) in self.ends.iter().zip(&self.is_complete) {
            // An error means that the device is lost.
            if end.is_reached().unwrap_or(false) {
                is_complete.store(true, Ordering::Release);
            }
        }
    }

    /// Whether the end of a rank was recorded as reached.
    pub fn is_complete(&self, rank: usize) -> bool {
        self.is_complete[rank].load(Ordering::Acquire)
    }
}
