//! Transcendental functions as straight-line code over lanes: range reduction and a polynomial, no library calls.
//!
//! Every function takes and returns f32 or f64 lanes (callers compute narrower types in f32), handles subnormals,
//! infinities, NaN and signed zeros as IEEE 754 recommends, and computes the same bits for every width. Errors are
//! stated in ulp (units in the last place of the true result). They are the worst errors found by the sweeps of the
//! tests, and hold for targets with FMA. Polynomial coefficients are computed by `tools/minimax.py`.

mod complex;
mod complex_hyperbolic;
mod erf;
mod exp;
mod exponent;
pub(crate) mod gpu;
mod huge_angle;
mod hyperbolic;
mod inverse_hyperbolic;
mod inverse_trig;
mod log;
mod power;
mod rounding;
mod trig;
mod wide;

use crate::lanes::{Lanes, Scalar};

pub use complex::Complex;
pub use erf::erf;
pub use exp::{exp, expm1};
pub use hyperbolic::{cosh, logistic, sinh, tanh};
pub use inverse_hyperbolic::{acosh, asinh, atanh};
pub use inverse_trig::{acos, asin, atan, atan2};
pub use log::{log, log1p};
pub use power::{cbrt, pow, rsqrt};
pub use rounding::{fmod, round_away};
pub use trig::{cos, sin, sin_cos, tan};

/// Selects one of two values by the lanes' precision.
fn by_precision<T: Copy>(x: Lanes<'_, '_>, single: T, double: T) -> T {
    if x.scalar() == Scalar::F64 { double } else { single }
}

/// Returns `ln 2` in two parts; the first has so few bits that its product with any exponent is exact.
fn ln2_parts(x: Lanes<'_, '_>) -> (f64, f64) {
    by_precision(x, (0.693359375, -2.121_944_4e-4), (0.6931471803691238, 1.9082149292705877e-10))
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Evaluates the polynomial with the given coefficients, lowest order first, by Horner's rule.
    pub(crate) fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut coefficients = coefficients.iter().rev().map(|&c| self.constant(c));
        let Some(leading) = coefficients.next() else {
            return self.constant(0.0);
        };
        coefficients.fold(leading, |sum, c| sum.fma(self, c))
    }

    /// Clamps this value to bounds; NaN is preserved.
    pub(crate) fn within(self, low: f64, high: f64) -> Self {
        if self.keeps_nan_in_hardware() {
            return self.minimum(self.constant(high)).maximum(self.constant(low));
        }
        self.constant(low).greater(self.constant(high).lesser(self))
    }
}
