//! A device of a program for several devices, seen from its evaluator.

use std::sync::Arc;

use crate::{Computation, InstrId, Literal, Result};

/// Connection of a device to the others, for the [evaluator](super::Evaluator::on_device) of that device.
pub trait Peers<'m>: Send + Sync {
    /// Executes the collective `instruction` of `computation` together with the other devices of its group. `operands`
    /// has this device's values. Returns this device's results, one for each array.
    ///
    /// Called in the order in which the device reaches its collectives.
    fn exchange(&self, position: (&'m Computation, InstrId), operands: Vec<Literal>) -> Result<Vec<Literal>>;
}

/// Place of an evaluator among the devices of a program, and its connection to the others.
#[derive(Clone)]
pub(crate) struct Device<'m> {
    pub replica: usize,
    pub partition: usize,
    pub peers: Arc<dyn Peers<'m> + 'm>,
}
