//! The error function.

use std::f64::consts::FRAC_2_SQRT_PI;

use super::by_precision;
use super::exp::{exp, exp2_roughly};
use crate::lanes::{Lanes, Scalar};

/// `2 / sqrt(pi)` in two parts.
const SLOPE_F32: (f64, f64) = (1.128379225730896, -5.8635382771399236e-08);
const SLOPE_F64: (f64, f64) = (FRAC_2_SQRT_PI, 1.533545961316588e-17);

/// Coefficients of `erf x / x` in `x^2`, without the first one, up to 0.8 (f32) and 0.88 (f64).
const NEAR_F32: &[f64] = &[-0.3761261, 0.11283186, -0.026822997, 0.005087884, -0.00065471133];
const NEAR_F64: &[f64] = &[
    -0.3761263890318374,
    0.11283791670954393,
    -0.026866170644941078,
    0.005223977622980396,
    -0.0008548326838115231,
    0.00012055324192247112,
    -1.492537654219336e-05,
    1.6456418350992602e-06,
    -1.628720962258214e-07,
    1.4110644246730054e-08,
    -8.635377083334227e-10,
];

/// Coefficients of `log2 erfc x` from 0.8 up to 3.93.
pub(super) const FAR_F32: &[f64] =
    &[-8.202405e-05, -1.6277515, -0.91775906, -0.1513047, 0.032745447, -0.0045659943, 0.0003010931];

/// Coefficients of `erfc x e^(x^2)` in `(x - 3) / (x + 3)` from 0.88 up to 5.93.
const FAR_F64: &[f64] = &[
    0.1790011511813839,
    -0.3262335600436323,
    0.24560380170030002,
    -0.15011593651309432,
    0.07166583955730317,
    -0.024392463088440668,
    0.004269416882325552,
    0.0007090966195539398,
    -0.0005927681727765736,
    5.436511088532235e-05,
    7.652014841840073e-05,
    -3.1051340407890607e-06,
    -5.5797768105154965e-06,
];

/// Returns `erf x` for `x` from 0 up to slightly above 0.8; `square` is `x^2`.
pub(super) fn near_zero<'e, 'ctx>(x: Lanes<'e, 'ctx>, square: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let slope = by_precision(x, SLOPE_F32, SLOPE_F64);
    let bend = square.fma(square.polynomial(by_precision(x, NEAR_F32, NEAR_F64)), slope.1);
    x.fma(slope.0, x * bend)
}

/// Returns `erf x`. Error at most 1.3 ulp (f32) and 1.35 ulp (f64).
pub fn erf<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (bound, border) = by_precision(x, (3.93, 0.8), (5.93, 0.88));
    let magnitude = x.constant(bound).lesser(x.fabs());
    let z = magnitude * magnitude;
    let near = near_zero(magnitude, z);
    // 1 - erfc x: erfc x is at most a quarter here, which scales its error down.
    let complement = if x.scalar() == Scalar::F64 {
        let t = (magnitude - 3.0) / (magnitude + 3.0);
        exp(-z) * t.polynomial(FAR_F64)
    } else {
        let log = magnitude.polynomial(FAR_F32);
        let k = log.nearest_multiple(1.0);
        exp2_roughly(log - k, k)
    };
    // NaN takes the near branch.
    magnitude.ge(border).select(x.constant(1.0) - complement, near).copysign(x)
}
