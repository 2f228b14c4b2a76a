//! Arrays of each device in an `.npz` file: `arg0.dev0`, `arg0.dev1`, ..., `out0.dev0`.

use std::path::Path;

use xla::hlo::{ArrayShape, Error, Literal, Result};
use xla::npz::Archive;

/// Spelling of the names of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `arg0`: a whole array.
    Whole,
    /// `arg0.dev1`: the array of one device.
    OfDevices,
}

/// Text between the number of an array and that of a device.
pub const DEVICE: &str = ".dev";

/// File with arrays of several devices.
pub struct DeviceArrays {
    archive: Archive,
    /// Start of the names: `arg` or `out`.
    prefix: &'static str,
    devices: usize,
}

/// Returns the name of an array of one of several devices, or of the only device.
pub fn name(prefix: &str, index: usize, device: usize, devices: usize) -> String {
    if devices == 1 { format!("{prefix}{index}") } else { format!("{prefix}{index}{DEVICE}{device}") }
}

/// Returns the name of an array of a file that is not one of `count` whole arrays.
pub fn surplus<'a>(archive: &'a Archive, prefix: &str, count: usize) -> Option<&'a String> {
    let number = |name: &str| name.strip_prefix(prefix)?.parse::<usize>().ok();
    let is_known = |name: &str| number(name).is_some_and(|i| i < count && name == format!("{prefix}{i}"));
    archive.names().iter().find(|name| !is_known(name))
}

impl DeviceArrays {
    /// Opens a file. `prefix` is the start of the names: `arg` or `out`.
    pub fn open(path: &Path, prefix: &'static str, devices: usize) -> Result<DeviceArrays> {
        Ok(DeviceArrays { archive: Archive::open(path)?, prefix, devices })
    }

    /// Returns the spelling of the names; an error for a mix.
    pub fn spelling(&self) -> Result<Spelling> {
        let is_of_device = |name: &&String| name.contains(DEVICE);
        let names = self.archive.names();
        let prefix = self.prefix;
        match (names.iter().find(is_of_device), names.iter().find(|name| !is_of_device(name))) {
            (Some(one), Some(whole)) => Err(Error::invalid_argument(format!(
                "{} has arrays of one device ({one}) and of all devices ({whole}); all names must be {prefix}K{DEVICE}D, \
                 or all {prefix}K",
                self.archive.path().display()
            ))),
            (Some(_), None) => Ok(Spelling::OfDevices),
            (None, _) => Ok(Spelling::Whole),
        }
    }

    /// Returns an error unless there are `count` arrays of each device, and no others.
    pub fn check(&self, count: usize) -> Result<()> {
        let (prefix, devices, file) = (self.prefix, self.devices, self.archive.path().display());
        let names = || (0..count).flat_map(|i| (0..devices).map(move |device| name(prefix, i, device, devices)));
        let expected = || match (count, names().next(), names().last()) {
            (1.., Some(first), Some(last)) => format!("{count} arrays on each of {devices} devices: {first} to {last}"),
            _ => "no arrays".to_string(),
        };
        if let Some(missing) = names().find(|name| !self.archive.names().contains(name)) {
            let message = format!("{file} has no {missing}; the program has {}", expected());
            return Err(Error::invalid_argument(message));
        }
        let known: std::collections::BTreeSet<String> = names().collect();
        if let Some(extra) = self.archive.names().iter().find(|name| !known.contains(*name)) {
            let message = format!("{file} also has {extra}; the program has {}", expected());
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// Reads an array of a device, which must have this shape.
    pub fn read(&mut self, index: usize, device: usize, shape: &ArrayShape) -> Result<Literal> {
        self.archive.read(&name(self.prefix, index, device, self.devices), shape)
    }

    /// Returns the file, to read whole arrays.
    pub fn into_archive(self) -> Archive {
        self.archive
    }
}
