//! Barriers in shared memory (`mbarrier`): phases, each of which is complete when so many arrivals and all bytes that
//! are expected have come.

use std::collections::BTreeMap;

use super::boxes::BulkCopy;
use super::knowledge::Knowledge;

/// Arrivals of a phase at most, and bytes that are expected at once.
pub(super) const MOST: i64 = (1 << 20) - 1;

/// A barrier.
#[derive(Debug)]
pub(super) struct PhaseBarrier {
    /// Arrivals of a phase.
    count: u32,
    /// Arrivals that are missing.
    pub missing: u32,
    /// Phases that are complete.
    pub phase: u64,
    /// Bytes that are expected.
    pub bytes: i64,
    /// Copies of the phase, which are done when somebody waits for them.
    pub copies: Vec<BulkCopy>,
    /// Knowledge of those that have arrived in the phase.
    gathered: Knowledge,
    /// Knowledge of those that have arrived in phases that are complete.
    pub passed: Knowledge,
    /// The number of the barrier among agents.
    pub agent: usize,
    /// The thread that made it, and when.
    pub made: (usize, u32),
}

impl PhaseBarrier {
    pub fn new(count: u32, agent: usize, made: (usize, u32)) -> PhaseBarrier {
        let (gathered, passed) = (Knowledge::default(), Knowledge::default());
        PhaseBarrier { count, missing: count, phase: 0, bytes: 0, copies: Vec::new(), gathered, passed, agent, made }
    }

    /// Bytes that copies will bring.
    pub fn under_way(&self) -> i64 {
        self.copies.iter().map(|copy| copy.map.box_bytes() as i64).sum()
    }

    /// Takes arrivals of a thread that knows so much; false if there are too many.
    pub fn arrive(&mut self, arrivals: u32, knows: &Knowledge) -> bool {
        let Some(missing) = self.missing.checked_sub(arrivals) else { return false };
        self.missing = missing;
        self.gathered.join(knows);
        true
    }

    /// Expects bytes; false if these are too many.
    pub fn expect(&mut self, bytes: u32) -> bool {
        self.bytes += i64::from(bytes);
        self.bytes <= MOST
    }

    /// Whether nothing is missing but copies that are under way.
    pub fn is_ready(&self) -> bool {
        self.missing == 0 && self.bytes == self.under_way()
    }

    /// Ends the phase, whose copies are done.
    pub fn complete(&mut self) {
        self.phase += 1;
        self.missing = self.count;
        self.bytes = 0;
        self.passed.join(&std::mem::take(&mut self.gathered));
        self.passed.learn(self.agent, self.phase as u32);
    }

    /// The clock of copies of the phase that is next to be complete.
    pub fn clock(&self) -> u32 {
        self.phase as u32 + 1
    }
}

/// Bytes of a barrier.
pub(super) const BARRIER_BYTES: usize = 8;

/// Barriers in the shared memory of a block.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// By their addresses.
    pub at: BTreeMap<usize, PhaseBarrier>,
    pub made: usize,
    /// The number of times that waits were given up since something has happened.
    pub timeouts: u32,
    /// For actors that are no threads.
    stamps: u64,
}

impl Barriers {
    /// Another state of knowledge.
    pub fn stamp(&mut self) -> u64 {
        self.stamps += 1;
        1 << 63 | self.stamps
    }
}
