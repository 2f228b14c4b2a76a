//! mbarrier objects in shared memory. A phase completes when all expected arrivals and all expected bytes have come.

use std::collections::BTreeMap;

use super::boxes::BulkCopy;
use super::knowledge::Knowledge;

/// Maximum number of arrivals of a phase, and of expected bytes.
pub(super) const MOST: i64 = (1 << 20) - 1;

/// mbarrier object.
#[derive(Debug)]
pub(super) struct PhaseBarrier {
    /// Number of arrivals of a phase.
    count: u32,
    /// Pending arrivals of the current phase.
    pub missing: u32,
    /// Number of completed phases.
    pub phase: u64,
    /// Expected bytes of the current phase.
    pub bytes: i64,
    /// Copies of the current phase, executed when a thread waits for it.
    pub copies: Vec<BulkCopy>,
    /// Knowledge of the threads that arrived in the current phase.
    gathered: Knowledge,
    /// Knowledge of the threads that arrived in completed phases.
    pub passed: Knowledge,
    /// Index of the barrier among agents.
    pub agent: usize,
    /// Thread that initialised the barrier, and its clock.
    pub made: (usize, u32),
}

impl PhaseBarrier {
    pub fn new(count: u32, agent: usize, made: (usize, u32)) -> PhaseBarrier {
        let (gathered, passed) = (Knowledge::default(), Knowledge::default());
        PhaseBarrier { count, missing: count, phase: 0, bytes: 0, copies: Vec::new(), gathered, passed, agent, made }
    }

    /// Returns the number of bytes of pending copies.
    pub fn under_way(&self) -> i64 {
        self.copies.iter().map(|copy| copy.map.box_bytes() as i64).sum()
    }

    /// Adds arrivals of a thread with its knowledge; false if there are too many.
    pub fn arrive(&mut self, arrivals: u32, knows: &Knowledge) -> bool {
        let Some(missing) = self.missing.checked_sub(arrivals) else { return false };
        self.missing = missing;
        self.gathered.join(knows);
        true
    }

    /// Adds expected bytes; false if there are too many.
    pub fn expect(&mut self, bytes: u32) -> bool {
        self.bytes += i64::from(bytes);
        self.bytes <= MOST
    }

    /// Whether the phase can complete: no arrivals are missing, and pending copies bring all expected bytes.
    pub fn is_ready(&self) -> bool {
        self.missing == 0 && self.bytes == self.under_way()
    }

    /// Completes the phase, whose copies have been executed.
    pub fn complete(&mut self) {
        self.phase += 1;
        self.missing = self.count;
        self.bytes = 0;
        self.passed.join(&std::mem::take(&mut self.gathered));
        self.passed.learn(self.agent, self.phase as u32);
    }

    /// Returns the clock of copies of the current phase.
    pub fn clock(&self) -> u32 {
        self.phase as u32 + 1
    }
}

/// Size of an mbarrier object in bytes.
pub(super) const BARRIER_BYTES: usize = 8;

/// mbarrier objects in the shared memory of a block.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// Barriers by their addresses.
    pub at: BTreeMap<usize, PhaseBarrier>,
    pub made: usize,
    /// Number of times that waits timed out since the last progress of a thread.
    pub timeouts: u32,
    /// Counter of stamps for actors that are not threads.
    stamps: u64,
}

impl Barriers {
    /// Returns a stamp for a new state of knowledge.
    pub fn stamp(&mut self) -> u64 {
        self.stamps += 1;
        1 << 63 | self.stamps
    }
}
