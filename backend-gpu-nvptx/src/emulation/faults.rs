//! Injected failures, for tests of error handling.

use std::sync::{Mutex, PoisonError};

use xla_hlo::{Error, Result};
use xla_service::executor::{Fault, FaultInjection};

/// Requested failures, each with the number of operations of its kind that still succeed.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<(Fault, u64)>>);

impl Faults {
    /// Returns an error if an operation of this kind must fail now.
    pub fn strike(&self, fault: Fault) -> Result<()> {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = requests.iter().position(|(kind, _)| *kind == fault) else { return Ok(()) };
        if let Some(left) = requests[place].1.checked_sub(1) {
            requests[place].1 = left;
            return Ok(());
        }
        requests.swap_remove(place);
        Err(match fault {
            Fault::Allocation => Error::resource_exhausted("device memory cannot be allocated: injected fault"),
            Fault::Kernel => Error::internal("the kernel failed: injected fault"),
            Fault::Copy => Error::internal("the copy failed: injected fault"),
        })
    }
}

impl FaultInjection for Faults {
    fn inject(&self, fault: Fault, skip: u64) -> Result<()> {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.retain(|(kind, _)| *kind != fault);
        requests.push((fault, skip));
        Ok(())
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
