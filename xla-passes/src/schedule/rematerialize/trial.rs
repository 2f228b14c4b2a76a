//! Trials: a module's memory with copies inserted and buffers assigned.

use xla_hlo::{Module, Result};

use crate::buffers::{BufferAssignment, BufferOptions, LiveValue, assign_buffers};
use crate::schedule::insert_copies::insert_copies;

/// A module, with a trial of copy insertion and buffer assignment.
pub(super) struct Trial {
    pub module: Module,
    /// The module with copies. Instructions of both modules have equal ids.
    pub copied: Module,
    pub buffers: BufferAssignment,
}

impl Trial {
    /// `None` for modules that buffers cannot be assigned to: without an order, or with computations that are called
    /// twice.
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

    /// Measure that sweeps make smaller: bytes in all; at equal bytes, since there may be several peaks, those at the
    /// peak and the time that values are kept.
    pub fn cost(&self) -> (u64, usize, u128) {
        let kept = |v: &LiveValue| v.slice.size as u128 * (v.until - v.from) as u128;
        (self.bytes(), self.buffers.peak().bytes, self.buffers.values().iter().map(kept).sum())
    }
}
