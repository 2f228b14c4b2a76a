//! Parts of a program's arguments and results that its devices have.

use xla_hlo::{Error, ProgramShape, Result, VerifiedModule};
use xla_passes::join::Spread;

use crate::signature::Signature;

/// Arguments and results of a program for several devices that work together.
pub(super) struct Parts {
    /// The program as it came.
    pub source: VerifiedModule,
    /// Arguments and results of each device.
    pub signature: Signature,
    /// Parameters and result of each device, tuples and tokens and all.
    pub shape: ProgramShape,
    pub arguments: Vec<Spread>,
    pub results: Vec<Spread>,
    /// Number of devices.
    pub devices: usize,
}

impl Parts {
    /// An error unless these are as many devices.
    pub fn check_devices(&self, devices: &[usize]) -> Result<()> {
        if devices.len() == self.devices {
            return Ok(());
        }
        let (name, wanted, given) = (self.source.name(), self.devices, devices.len());
        Err(Error::invalid_argument(format!("{name} is a program for {wanted} devices, {given} were named")))
    }
}
