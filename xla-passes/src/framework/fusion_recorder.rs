//! Observer that records fusion decisions.

use std::sync::{Mutex, PoisonError};

use xla_hlo::Result;

use super::explain::FusionDecision;
use super::observer::{PassEvent, PassObserver};

/// Records every fusion decision.
#[derive(Debug, Default)]
pub struct FusionRecorder(Mutex<Vec<FusionDecision>>);

impl FusionRecorder {
    /// Removes and returns the recorded decisions in the order of their creation.
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
