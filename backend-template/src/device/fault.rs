//! Fault injection: failures on request.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kind of an injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Memory allocation.
    Allocation,
    /// Kernel execution.
    Kernel,
    /// Copy to, from or on the device.
    Copy,
}

/// Number of successful operations before the injected fault, for each kind of fault; `None` if no fault is pending.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<[Option<u64>; 3]>);

impl Faults {
    pub fn inject(&self, kind: FaultKind, skip: u64) {
        self.counters()[kind as usize] = Some(skip);
    }

    pub fn clear(&self) {
        *self.counters() = [None; 3];
    }

    /// Counts an operation; returns true if this operation must fail.
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
