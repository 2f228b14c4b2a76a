//! Transcendental functions as straight-line code over lanes: range reduction and a polynomial, no library calls.
//!
//! Every function takes and gives f32 or f64 lanes (narrower types are computed in f32 by their caller), treats
//! subnormals, infinities, NaN and signed zeros as IEEE 754 recommends, and computes the same bits whatever the width.
//! Errors are stated in ulp, units in the last place of the true result, as the worst seen in the sweeps of the tests,
//! and are for targets with FMA. Polynomial coefficients come from `tools/minimax.py`.

mod exp;

use crate::lanes::{Lanes, Scalar};

pub use exp::exp;

/// One of two tables or numbers, by the lanes' precision.
fn by_precision<T: Copy>(x: Lanes<'_, '_>, single: T, double: T) -> T {
    if x.scalar() == Scalar::F64 { double } else { single }
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// The polynomial with the given coefficients, lowest order first, by Horner's rule.
    pub(crate) fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut coefficients = coefficients.iter().rev().map(|&c| self.constant(c));
        let Some(leading) = coefficients.next() else {
            return self.constant(0.0);
        };
        coefficients.fold(leading, |sum, c| sum.fma(self, c))
    }

    /// This value kept within bounds; NaN stays.
    pub(crate) fn within(self, low: f64, high: f64) -> Self {
        self.constant(low).greater(self.constant(high).lesser(self))
    }

    /// The nearest integral value (ties to even) of `self * factor`, for results below 2^22 (f32) or 2^51 (f64) in
    /// magnitude: adding 1.5 times the first number whose spacing is one leaves no fraction. Two cheap instructions on
    /// every target.
    pub(crate) fn nearest_multiple(self, factor: f64) -> Self {
        let spacing_one = by_precision(self, 1.5 * 2f64.powi(23), 1.5 * 2f64.powi(52));
        self.fma(factor, spacing_one) - spacing_one
    }
}
