//! Shards of a multi-device program's arguments and results.

use xla_hlo::{Error, ProgramShape, Result, VerifiedModule};
use xla_passes::join::Spread;

use crate::signature::Signature;

/// Arguments and results of a multi-device program.
pub(super) struct Shards {
    /// Original module, before the join.
    pub source: VerifiedModule,
    /// Arguments and results of each device.
    pub signature: Signature,
    /// Shape of parameters and result of each device, including tuples and tokens.
    pub shape: ProgramShape,
    pub arguments: Vec<Spread>,
    pub results: Vec<Spread>,
    /// For each argument of the joined program: the number of the original argument that it is a shard of, and the
    /// first device that holds the shard.
    pub inputs: Vec<(usize, usize)>,
    /// Number of devices.
    pub devices: usize,
}

impl Shards {
    pub fn new(
        source: VerifiedModule,
        signature: Signature,
        shape: ProgramShape,
        (arguments, results): (Vec<Spread>, Vec<Spread>),
        devices: usize,
    ) -> Shards {
        let mut inputs = Vec::new();
        for (number, spread) in arguments.iter().enumerate() {
            let parts = spread.parts.iter().min().zip(spread.parts.iter().max());
            let parts = parts.map_or(0..0, |(&first, &last)| first..last + 1);
            let holder = |part| spread.parts.iter().position(|&of| of == part);
            inputs.extend(parts.filter_map(holder).map(|holder| (number, holder)));
        }
        Shards { source, signature, shape, arguments, results, inputs, devices }
    }

    /// Returns an error unless the program is for this number of devices.
    pub fn check_devices(&self, devices: &[usize]) -> Result<()> {
        if devices.len() == self.devices {
            return Ok(());
        }
        let (name, wanted, given) = (self.source.name(), self.devices, devices.len());
        Err(Error::invalid_argument(format!("{name} is a program for {wanted} devices, but {given} were given")))
    }
}
