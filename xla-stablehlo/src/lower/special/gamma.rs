//! The logarithm of the gamma function, and its derivative.
//!
//! Uses the approximation of C. Lanczos, "A precision approximation of the gamma function" (1964), with g = 7 and the
//! nine terms of P. Godfrey. Arguments below 1/2 are reflected.

use std::f64::consts::{LN_2, PI};

use super::formula::Term;

const G: f64 = 7.0;

/// Value of the series at infinity.
const BASE: f64 = 0.999_999_999_999_809_9;

/// Coefficients of `1 / (z + 1)`, `1 / (z + 2)` and so on.
#[allow(clippy::excessive_precision, reason = "as published")]
const COEFFICIENTS: [f64; 8] = [
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
];

/// `ln |gamma(x)|`: infinite at infinities and at the poles 0, -1, -2 and so on.
pub(super) fn log_gamma(x: Term<'_>) -> Term<'_> {
    let (is_low, z) = reflected(x);
    let series = (1..).zip(COEFFICIENTS).fold(z.constant(BASE), |sum, (k, c)| sum + c / (z + f64::from(k)));
    let t = z + (G + 0.5);
    let log_t = log_of_shifted(z);
    // `(z + 1/2) ln t - t`, factored such that no intermediate result overflows before the final one.
    let log_y = (z + 0.5 - t / log_t) * log_t + 0.5 * (LN_2 + PI.ln()) + series.log();

    // `gamma(x) gamma(1 - x) = pi / sin(pi x)`. The argument is reduced because the sine would otherwise lose precision
    // near the poles.
    let magnitude = x.abs();
    let fraction = magnitude - magnitude.floor();
    let near = fraction.is_greater(0.5).select(1.0 - fraction, fraction);
    let log_sine = (near * PI).sin().log();
    let low = PI.ln() - log_sine - log_y;
    let low = log_sine.equals(f64::NEG_INFINITY).select(f64::INFINITY, low);
    magnitude.equals(f64::INFINITY).select(f64::INFINITY, is_low.select(low, log_y))
}

/// Derivative of [`log_gamma`] (digamma function); NaN at the poles.
pub(super) fn digamma(x: Term<'_>) -> Term<'_> {
    let (is_low, z) = reflected(x);
    let mut series = z.constant(BASE);
    let mut derivative = z.constant(0.0);
    for (k, c) in (1..).zip(COEFFICIENTS) {
        let distance = z + f64::from(k);
        let term = c / distance;
        series = series + term;
        derivative = derivative - term / distance;
    }
    let y = log_of_shifted(z) + derivative / series - G / (z + (G + 0.5));
    // `digamma(x) = digamma(1 - x) - pi cot(pi x)`, with the argument reduced by whole periods.
    let angle = (x + (x + 0.5).floor().abs()) * PI;
    let low = y - angle.cos() * PI / angle.sin();
    let is_pole = x.is_at_most(0.0).and(x.equals(x.floor()));
    is_pole.select(f64::NAN, is_low.select(low, y))
}

/// Returns whether `x < 1/2`, and the reflected argument: `-x` in that case, otherwise `x - 1`.
fn reflected(x: Term<'_>) -> (Term<'_>, Term<'_>) {
    let is_low = x.is_less(0.5);
    (is_low, is_low.select(-x, x - 1.0))
}

/// Computes `ln (z + g + 1/2)`.
fn log_of_shifted(z: Term<'_>) -> Term<'_> {
    (z / (G + 0.5)).log1p() + (G + 0.5).ln()
}
