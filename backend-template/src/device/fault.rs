//! Injected faults: failures on request.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kinds of injected faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Taking memory.
    Allocation,
    /// Running a kernel.
    Kernel,
    /// A copy to, from or on the device.
    Copy,
}

/// For each kind of fault, how many operations go well before the one that fails; `None` where none will.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<[Option<u64>; 3]>);

impl Faults {
    pub fn inject(&self, kind: FaultKind, skip: u64) {
        self.counters()[kind as usize] = Some(skip);
    }

    pub fn clear(&self) {
        *self.counters() = [None; 3];
    }

    /// Counts an operation; true if it is the one to fail.
    pub fn strikes(&self, kind: FaultKind) -> bool {
        let counter = &mut self.counters()[kind as usize];
        match counter {
            None => false,
            Some(0) => {
                *counter = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }

    fn counters(&self) -> MutexGuard<'_, [Option<u64>; 3]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
