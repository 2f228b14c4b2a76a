//! Comparison of outputs with expected ones, element by element.

use std::path::PathBuf;

use clap::Args;
use xla::LoadedExecutable;
use xla::compare::Tolerance;
use xla::hlo::{ArrayShape, Error, Literal, Result};
use xla::npz::Archive;

use super::device_arrays::{self, DeviceArrays, Spelling};
use super::devices;
use super::failure::{BadInput, Outcome};
use super::outputs::Outputs;

/// Expected outputs.
#[derive(Args, Debug)]
pub struct ExpectArgs {
    /// Compare the outputs with out0, out1, ... of an .npz file; fail if they differ
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Relative tolerance of --expect for floats; integers must be equal
    #[arg(long, value_name = "R", requires = "expect", default_value = "1e-5", value_parser = tolerance)]
    rtol: f64,
    /// Absolute tolerance of --expect for floats
    #[arg(long, value_name = "A", requires = "expect", default_value = "1e-6", value_parser = tolerance)]
    atol: f64,
    /// Let --expect distinguish 0 from -0
    #[arg(long, requires = "expect")]
    signed_zero: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| "the value must be a number of at least 0".to_string())
}

impl ExpectArgs {
    /// Compares the outputs; returns a sentence that they agree, or `None` if nothing is expected.
    pub fn check(&self, outputs: &Outputs) -> Outcome<Option<String>> {
        let Some(path) = &self.expect else { return Ok(None) };
        let (count, devices) = (outputs.leaves.len(), outputs.devices.len());
        let Some(program) = &outputs.program else {
            self.check_whole(path, outputs)?;
            return Ok(Some(format!("{count} outputs agree with {}", path.display())));
        };
        let mut arrays = DeviceArrays::open(path, "out", devices).bad_input()?;
        match arrays.spelling().bad_input()? {
            Spelling::OfDevices => {
                arrays.check(count).bad_input()?;
                self.compare(outputs, |i, device, shape| arrays.read(i, device, shape))?;
            }
            Spelling::Whole => self.check_parts(arrays.into_archive(), outputs, program)?,
        }
        Ok(Some(format!("{count} outputs of {devices} devices agree with {}", path.display())))
    }

    /// Compares each output of each device with its expected value.
    fn compare(
        &self,
        outputs: &Outputs,
        mut expected: impl FnMut(usize, usize, &ArrayShape) -> Result<Literal>,
    ) -> Outcome {
        let tolerance = Tolerance { rtol: self.rtol, atol: self.atol, signed_zero: self.signed_zero };
        for (i, leaf) in outputs.leaves.iter().enumerate() {
            for (device, actual) in outputs.devices.iter().enumerate() {
                let actual = &actual[i];
                // An array with dynamic dimensions is expected in its actual size.
                let shape = if leaf.shape.is_static() { &*leaf.shape } else { actual.array_shape() };
                let expected = expected(i, device, shape).bad_input()?;
                if let Some(difference) = tolerance.difference(&expected, actual) {
                    let message = format!("{} {}: {difference}", outputs.name(i, device), actual.shape());
                    return Err(Error::failed_precondition(message).into());
                }
            }
        }
        Ok(())
    }

    /// Compares the outputs of one device.
    fn check_whole(&self, path: &std::path::Path, outputs: &Outputs) -> Outcome {
        let mut archive = Archive::open(path).bad_input()?;
        no_more(&archive, outputs.leaves.len())?;
        self.compare(outputs, |i, _, shape| archive.read(&format!("out{i}"), shape))
    }

    /// Compares the outputs of each device with its parts of whole arrays.
    fn check_parts(&self, mut archive: Archive, outputs: &Outputs, program: &LoadedExecutable) -> Outcome {
        let shapes = outputs.leaves.iter().map(|leaf| &*leaf.shape);
        let parts = devices::parts(program, program.result_shardings(), shapes, |i| format!("out{i}")).bad_input()?;
        let partitions = devices::partitions(program)?;
        no_more(&archive, outputs.leaves.len())?;
        let mut last: Option<(usize, Literal)> = None;
        self.compare(outputs, |i, device, shape| {
            let part = &parts[i];
            let shape = if part.whole().dims() == outputs.leaves[i].shape.dims() { shape } else { part.whole() };
            let whole = match last.take() {
                Some((index, whole)) if index == i && whole.array_shape() == shape => whole,
                _ => archive.read(&format!("out{i}"), shape)?,
            };
            let (_, whole) = last.insert((i, whole));
            part.cut(whole, device % partitions)
        })
    }
}

/// Returns an error if an archive has other arrays than the outputs.
fn no_more(archive: &Archive, count: usize) -> Outcome {
    let Some(extra) = device_arrays::surplus(archive, "out", count) else { return Ok(()) };
    let message = format!("{} also has {extra}; the program has {count} outputs", archive.path().display());
    Err(Error::invalid_argument(message)).bad_input()
}
