//! Work that was sent.

use std::ops::Range;
use std::sync::Arc;

use xla_hlo::Result;
use xla_service::collective::InstructionKey;

use super::communicators::Communicators;
use super::progress::Progress;

/// Collective in the streams of its members.
#[derive(Debug)]
pub(crate) struct Work {
    pub instruction: Arc<InstructionKey>,
    /// Ordinals of the devices, by rank.
    pub ordinals: Vec<usize>,
    pub clique: Arc<Communicators>,
    pub progress: Arc<Progress>,
}

/// Work that a device waits for.
#[derive(Debug)]
pub(crate) struct Pending {
    pub work: Arc<Work>,
    /// Ranks whose ends the device waits for: its own, or all.
    ranks: Range<usize>,
}

impl Work {
    /// Whether the work of a rank is complete. Fails if it was aborted before, and if the device is lost.
    fn is_over(&self, rank: usize) -> Result<bool> {
        if self.progress.is_complete(rank) {
            return Ok(true);
        }
        // The order matters: an abort is recorded before it can make the stream reach the end.
        let is_reached = self.progress.is_reached(rank);
        match self.clique.failure() {
            Some(_) if self.progress.is_complete(rank) => Ok(true),
            Some(error) => Err(error.context(&*self.instruction)),
            None => is_reached,
        }
    }
}

impl Pending {
    /// Returns the part of one rank.
    pub fn new(work: Arc<Work>, rank: usize) -> Pending {
        Pending { work, ranks: rank..rank + 1 }
    }

    /// Makes the device wait for all ranks.
    pub fn wait_for_all(&mut self) {
        self.ranks = 0..self.work.ordinals.len();
    }

    /// Whether the work is complete. Fails if it was aborted before, and if a device is lost.
    pub fn is_over(&self) -> Result<bool> {
        for rank in self.ranks.clone() {
            if !self.work.is_over(rank)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
