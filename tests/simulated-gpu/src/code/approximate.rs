//! Approximate single-precision instructions, with the maximum errors that the PTX ISA (9.1) documents.

use super::Run;

/// Error of approximate instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximations {
    /// Results are too low by the documented maximum error.
    Low,
    /// Results are correctly rounded.
    #[default]
    Exact,
    /// Results are too high by the documented maximum error.
    High,
}

impl Approximations {
    /// Returns the function that adds the error to a correctly rounded result, and its second operand. Returns `None`
    /// for instructions without error, and for sine and cosine: their error depends on the operand and is not
    /// simulated.
    pub(super) fn error(self, opcode: &str) -> Option<(Run, u64)> {
        let side = match self {
            Approximations::Low => -1i8,
            Approximations::Exact => return None,
            Approximations::High => 1,
        };
        let words: Vec<&str> = opcode.split('.').filter(|word| *word != "ftz").collect();
        let relative = |error: f64| ((f64::from(side) * error).to_bits(), scaled as Run);
        let (number, run) = match words[..] {
            ["rcp", "approx", "f32"] => (i64::from(side) as u64, stepped as Run),
            ["ex2", "approx", "f32"] | ["div", "approx" | "full", "f32"] => {
                (i64::from(2 * side) as u64, stepped as Run)
            }
            ["sqrt", "approx", "f32"] => relative(2f64.powi(-23)),
            ["rsqrt", "approx", "f32"] => relative(2f64.powf(-22.9)),
            ["tanh", "approx", "f32"] => relative(2f64.powi(-11)),
            ["lg2", "approx", "f32"] => ((f64::from(side) * 2f64.powi(-22)).to_bits(), scaled_or_shifted as Run),
            _ => return None,
        };
        Some((run, number))
    }
}

fn normal(slot: u64) -> Option<f32> {
    Some(f32::from_bits(slot as u32)).filter(|y| y.is_normal())
}

/// Moves a value away from zero by `steps` units in the last place.
fn stepped(slot: u64, steps: u64, _: u64) -> u64 {
    normal(slot).map_or(slot, |y| u64::from(y.to_bits().wrapping_add(steps as u32)))
}

fn scaled(slot: u64, error: u64, _: u64) -> u64 {
    normal(slot).map_or(slot, |y| single(f64::from(y) * (1.0 + f64::from_bits(error))))
}

/// Adds the error of a logarithm: absolute for operands from 0.5 to 2, relative otherwise.
fn scaled_or_shifted(slot: u64, error: u64, _: u64) -> u64 {
    match f32::from_bits(slot as u32) {
        y if y.abs() < 1.0 => single(f64::from(y) + f64::from_bits(error)),
        _ => scaled(slot, error, 0),
    }
}

fn single(value: f64) -> u64 {
    u64::from((value as f32).to_bits())
}
