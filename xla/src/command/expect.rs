//! Comparison of outputs with expected ones, element by element.

use std::path::PathBuf;

use clap::Args;
use xla::compare::Tolerance;
use xla::hlo::{Error, Literal, Result};
use xla::npz::Archive;
use xla::service::Signature;

use super::failure::{BadInput, Outcome};

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
    pub fn check(&self, signature: &Signature, outputs: &[Literal]) -> Outcome<Option<String>> {
        let Some(path) = &self.expect else { return Ok(None) };
        let mut archive = Archive::open(path).bad_input()?;
        let tolerance = Tolerance { rtol: self.rtol, atol: self.atol, signed_zero: self.signed_zero };
        for (i, (leaf, actual)) in signature.results().iter().zip(outputs).enumerate() {
            // An array with dynamic dimensions is expected in its actual size.
            let shape = if leaf.shape.is_static() { &*leaf.shape } else { actual.array_shape() };
            let expected = archive.read(&format!("out{i}"), shape).bad_input()?;
            if let Some(difference) = tolerance.difference(&expected, actual) {
                return Err(Error::failed_precondition(format!("out{i} {}: {difference}", actual.shape())).into());
            }
        }
        let extra = format!("out{}", outputs.len());
        if archive.names().contains(&extra) {
            let message = format!("{} also has {extra}; the program has {} outputs", path.display(), outputs.len());
            return Err(Error::invalid_argument(message)).bad_input();
        }
        Ok(Some(format!("{} outputs agree with {}", outputs.len(), path.display())))
    }
}
