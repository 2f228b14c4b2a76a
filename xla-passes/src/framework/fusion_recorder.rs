//! An observer that keeps every decision about fusion.

use std::sync::{Mutex, PoisonError};

use xla_hlo::Result;

use super::explain::FusionDecision;
use super::observer::{PassEvent, PassObserver};

/// Keeps every decision about fusion.
#[derive(Debug, Default)]
pub struct FusionRecorder(Mutex<Vec<FusionDecision>>);

impl FusionRecorder {
    /// The decisions so far, in the order in which they were made; the recorder is then empty.
    pub fn take(&self) -> Vec<FusionDecision> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PassObserver for FusionRecorder {
    fn after(&self, _: &PassEvent<'_>) -> Result<()> {
        Ok(())
    }

    fn explains(&self) -> bool {
        true
    }

    fn fusion(&self, decision: FusionDecision) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
    }
}
