//! Connection of a device's evaluator to the lock-step evaluation.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, PoisonError};

use super::super::Peers;
use crate::{Computation, Error, InstrId, Literal, Result};

/// Report of a device to the lock-step evaluation.
pub(super) enum Report<'m> {
    /// The device waits at a collective.
    Arrived(Arrival<'m>),
    /// The device has run the entry computation.
    Finished(Result<Literal>),
}

/// A device that waits at a collective.
pub(super) struct Arrival<'m> {
    pub computation: &'m Computation,
    pub instruction: InstrId,
    pub operands: Vec<Literal>,
}

impl Arrival<'_> {
    /// Whether both devices wait at the same instruction.
    pub fn is_with(&self, other: &Arrival<'_>) -> bool {
        std::ptr::eq(self.computation, other.computation) && self.instruction == other.instruction
    }

    /// Returns the instruction and its computation for error messages.
    pub fn describe(&self) -> String {
        let instruction = self.computation[self.instruction].name();
        format!("{instruction} of computation {}", self.computation.name())
    }
}

/// Channels of one device.
pub(super) struct Link<'m> {
    pub reports: Sender<Report<'m>>,
    /// Results of the collective at which the device waits.
    pub results: Mutex<Receiver<Vec<Literal>>>,
}

impl<'m> Peers<'m> for Link<'m> {
    fn exchange(&self, position: (&'m Computation, InstrId), operands: Vec<Literal>) -> Result<Vec<Literal>> {
        let (computation, instruction) = position;
        let arrival = Arrival { computation, instruction, operands };
        // Both channels are closed once another device has failed.
        let stopped = || Error::cancelled("another device failed");
        self.reports.send(Report::Arrived(arrival)).map_err(|_| stopped())?;
        self.results.lock().unwrap_or_else(PoisonError::into_inner).recv().map_err(|_| stopped())
    }
}
