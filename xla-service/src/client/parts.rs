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
    /// For each argument of the joined program the argument that it is a part of, and the first device that has it.
    pub inputs: Vec<(usize, usize)>,
    /// Number of devices.
    pub devices: usize,
}

impl Parts {
    pub fn new(
        source: VerifiedModule,
        signature: Signature,
        shape: ProgramShape,
        (arguments, results): (Vec<Spread>, Vec<Spread>),
        devices: usize,
    ) -> Parts {
        let mut inputs = Vec::new();
        for (number, spread) in arguments.iter().enumerate() {
            let parts = spread.parts.iter().min().zip(spread.parts.iter().max());
            let parts = parts.map_or(0..0, |(&first, &last)| first..last + 1);
            let holder = |part| spread.parts.iter().position(|&of| of == part);
            inputs.extend(parts.filter_map(holder).map(|holder| (number, holder)));
        }
        Parts { source, signature, shape, arguments, results, inputs, devices }
    }

    /// An error unless these are as many devices.
    pub fn check_devices(&self, devices: &[usize]) -> Result<()> {
        if devices.len() == self.devices {
            return Ok(());
        }
        let (name, wanted, given) = (self.source.name(), self.devices, devices.len());
        Err(Error::invalid_argument(format!("{name} is a program for {wanted} devices, {given} were named")))
    }
}
