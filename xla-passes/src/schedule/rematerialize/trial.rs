//! Trials: the memory of a module with copies inserted and buffers assigned.

use xla_hlo::{Module, Result};

use crate::buffers::{BufferAssignment, BufferOptions, LiveValue, assign_buffers};
use crate::schedule::insert_copies::insert_copies;

/// A module with a trial of copy insertion and buffer assignment.
pub(super) struct Trial {
    pub module: Module,
    /// The module with copies. Instructions of both modules have equal ids.
    pub copied: Module,
    pub buffers: BufferAssignment,
}

impl Trial {
    /// Runs the trial. `None` if buffers cannot be assigned: the module has no schedule, or a computation has several
    /// callers.
    pub fn new(module: Module) -> Result<Option<Trial>> {
        let mut copied = module.clone();
        if !module.attributes().is_scheduled || insert_copies(&mut copied).is_err() {
            return Ok(None);
        }
        let options = BufferOptions { verify: false, ..BufferOptions::default() };
        let buffers = assign_buffers(&copied, &options)?;
        Ok(Some(Trial { module, copied, buffers }))
    }

    pub fn bytes(&self) -> u64 {
        self.buffers.total_bytes() as u64
    }

    /// Returns the measure that sweeps minimize: total bytes first. There may be several peaks, so that ties are
    /// resolved by the bytes at the first peak and by live ranges weighted by size.
    pub fn cost(&self) -> (u64, usize, u128) {
        let kept = |v: &LiveValue| v.slice.size as u128 * (v.until - v.from) as u128;
        (self.bytes(), self.buffers.peak().bytes, self.buffers.values().iter().map(kept).sum())
    }
}
