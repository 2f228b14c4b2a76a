//! Outputs of a run on all devices of a program.

use xla::hlo::Literal;
use xla::service::ResultLeaf;
use xla::{LoadedExecutable, Result};

use super::{device_arrays, output, signature};

/// Outputs of a program.
pub struct Outputs {
    /// Arrays of the result, without layouts.
    pub leaves: Vec<ResultLeaf>,
    /// Values on each device.
    pub devices: Vec<Vec<Literal>>,
    /// Program that several devices have run; `None` for a program of one device.
    pub program: Option<LoadedExecutable>,
}

impl Outputs {
    /// Creates the outputs of a program on several devices.
    pub fn of_devices(program: LoadedExecutable, devices: Vec<Vec<Literal>>) -> Outputs {
        let plain = |leaf: &ResultLeaf| ResultLeaf { shape: signature::plain(&leaf.shape).into(), ..leaf.clone() };
        let leaves = program.signature().results().iter().map(plain).collect();
        Outputs { leaves, devices, program: Some(program) }
    }

    /// Returns the name of an output of a device: `out0`, or `out0.dev1` if there are several devices.
    pub fn name(&self, index: usize, device: usize) -> String {
        device_arrays::name("out", index, device, self.devices.len())
    }

    /// Returns all arrays with their names: those of all devices for each output.
    pub fn named(&self) -> impl Iterator<Item = (String, &Literal)> {
        let count = self.devices.first().map_or(0, Vec::len);
        let of_output = move |i| self.devices.iter().enumerate().map(move |(d, own)| (self.name(i, d), &own[i]));
        (0..count).flat_map(of_output)
    }

    /// Writes the arrays to an archive.
    pub fn write(&self, path: &std::path::Path) -> Result<()> {
        xla::npz::write_named(path, self.named())
    }

    /// Formats all arrays for a reader.
    pub fn listing(&self) -> String {
        self.named().map(|(name, literal)| format!("{name}: {}\n", output::show(literal))).collect()
    }
}
