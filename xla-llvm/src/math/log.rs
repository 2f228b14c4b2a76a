//! Natural logarithms.

use super::gpu::hardware::near_reciprocal;
use super::wide::{Wide, exact_product, exact_sum, exact_sum_ordered};
use super::{by_precision, ln2_parts};
use crate::lanes::{Lanes, Scalar};

/// Coefficients of `(log(1+f) - f + f^2/2) / f^3` on `|f| <= 1/3`.
pub(super) const CUBIC_F32: &[f64] =
    &[0.33333215, -0.24999784, 0.20010477, -0.16681208, 0.14004435, -0.12172952, 0.13992576, -0.1294644];

/// Coefficients of `(2 atanh s - 2 s) / s^3` in `s^2` on `|s| <= 1/5`.
const ATANH_F64: &[f64] = &[
    0.666666666666666,
    0.4000000000005664,
    0.28571428555841516,
    0.22222224294674672,
    0.18181665994794155,
    0.15391107802599163,
    0.1317367195883705,
    0.13842533278657784,
];

/// Coefficients of `(atanh s - s - s^3/3) / s^5` in `s^2` on `|s| <= 1/5`.
const TAIL_F32: &[f64] = &[0.20000196, 0.14262822, 0.11936092];
const TAIL_F64: &[f64] = &[
    0.19999999999999862,
    0.1428571428578865,
    0.1111111109562719,
    0.09090910762600325,
    0.0769220334907488,
    0.06670571520056498,
    0.057961898633279156,
    0.06285653015384317,
];

/// Decomposition of a positive finite number as `2^k m` with `2/3 <= m < 4/3`; `exponent` is `k` as an integer.
struct Split<'e, 'ctx> {
    k: Lanes<'e, 'ctx>,
    exponent: Lanes<'e, 'ctx>,
    m: Lanes<'e, 'ctx>,
}

fn split<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Split<'e, 'ctx> {
    let (mantissa, least_normal, two_thirds) = by_precision(
        x,
        (23, f64::from(f32::MIN_POSITIVE), 0x3f2a_aaab),
        (52, f64::MIN_POSITIVE, 0x3fe5_5555_5555_5555),
    );
    // Scale subnormals into the normal range first.
    let subnormal = x.lt(least_normal);
    let (lift, lifted) = if x.may_flush() { lifted_as_integer(x) } else { (mantissa + 2, x * 2f64.powi(mantissa + 2)) };
    let bits = subnormal.select(lifted, x).bits();
    let exponent = (bits - two_thirds).ashr(i64::from(mantissa));
    let m = (bits - (exponent << i64::from(mantissa))).as_float();
    let exponent = subnormal.select(exponent - i64::from(lift), exponent);
    Split { k: exponent.small_to_float(), exponent, m }
}

/// Decomposes a positive subnormal `x` as `2^-k y` without arithmetic on `x`, which might be flushed; returns `k` and
/// `y`. The bits of `x` are an integer. As the low bits of a power of two whose last place is 1, they add this integer.
fn lifted_as_integer<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> (i32, Lanes<'e, 'ctx>) {
    let (lift, power, bits) = by_precision(
        x,
        (149, 2f64.powi(23), i64::from(2f32.powi(23).to_bits())),
        (1074, 2f64.powi(52), 2f64.powi(52).to_bits() as i64),
    );
    (lift, (x.bits() | bits).as_float() - power)
}

/// Returns `k ln 2 + log(1 + f + low)` for `|f| <= 1/3` and a tiny `low`.
fn log_of_split<'e, 'ctx>(k: Lanes<'e, 'ctx>, f: Lanes<'e, 'ctx>, low: Option<Lanes<'e, 'ctx>>) -> Lanes<'e, 'ctx> {
    let ln2 = ln2_parts(f);
    let mut rest = k * ln2.1;
    if let Some(low) = low {
        // log(1 + f + low) = log(1 + f) + low / (1 + f) + ..., where 1 - f approximates 1 / (1 + f) sufficiently.
        rest = rest + low - low * f;
    }
    let square = f * f;
    if f.scalar() == Scalar::F64 {
        // log(1 + f) = f - f^2/2 + s (f^2/2 + r(s^2)), s = f / (2 + f); the rounding error of s hardly matters.
        let s = f / (f + 2.0);
        let z = s * s;
        let r = z * z.polynomial(ATANH_F64);
        let half_square = square * 0.5;
        let rest = s.fma(half_square + r, rest);
        k.fma(ln2.0, f - (half_square - rest))
    } else {
        let rest = square.fma(f.fma(f.polynomial(CUBIC_F32), -0.5), rest);
        k.fma(ln2.0, f + rest)
    }
}

/// Replaces the result `y` where `x` is not positive and finite.
pub(super) fn with_log_specials<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let infinity = x.constant(f64::INFINITY);
    let bad = x.eq(0.0).select(-infinity, f64::NAN);
    x.gt(0.0).select(x.lt(infinity).select(y, x), bad)
}

/// Returns `log x`. Error at most 0.85 ulp (f32) and 0.75 ulp (f64).
pub fn log<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let Split { k, m, .. } = split(x);
    with_log_specials(x, log_of_split(k, m - 1.0, None))
}

/// Returns `log(1 + x)`. Error at most 1.05 ulp (f32) and 0.85 ulp (f64).
pub fn log1p<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let sum = exact_sum(x.constant(1.0), x);
    with_log_specials(sum.high, log_of_sum(sum, None)).copysign(x)
}

/// Returns `log((high + low) 2^doublings)` for a positive finite sum.
pub(super) fn log_of_sum<'e, 'ctx>(sum: Wide<'e, 'ctx>, doublings: Option<Lanes<'e, 'ctx>>) -> Lanes<'e, 'ctx> {
    let Split { k, exponent, m } = split(sum.high);
    let low = sum.low * (-exponent).power_of_two_or_zero();
    let k = doublings.map_or(k, |doublings| k + doublings);
    log_of_split(k, m - 1.0, Some(low))
}

/// Returns `log x` as a double-word number with a relative error near 2^-33 (f32) and 2^-64 (f64), for the power
/// function. `x` must be positive and finite.
pub(super) fn log_wide<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Wide<'e, 'ctx> {
    let Split { k, m, .. } = split(x);
    let f = m - 1.0;
    // s = f / (2 + f) in two words: one division, then the remainder times the reciprocal.
    let divisor = exact_sum_ordered(f.constant(2.0), f);
    let reciprocal = near_reciprocal(divisor.high);
    let high = f * reciprocal;
    let product = exact_product(high, divisor.high);
    let remainder = (f - product.high) - product.low - high * divisor.low;
    let s = exact_sum_ordered(high, remainder * reciprocal);
    // log(1 + f) = 2 s (1 + z/3 + z^2 t(z)), z = s^2.
    let z = s.times(s);
    let third = by_precision(f, (0.33333334, -9.934108e-09), (0.3333333333333333, 1.850371707708594e-17));
    let third = Wide { high: f.constant(third.0), low: f.constant(third.1) };
    let tail = z.high * z.high * z.high.polynomial(by_precision(f, TAIL_F32, TAIL_F64));
    let cubic = z.times(third);
    let cubic = exact_sum_ordered(cubic.high, cubic.low + tail);
    let twice = Wide { high: s.high * 2.0, low: s.low * 2.0 };
    let log = twice.plus_smaller(twice.times(cubic));
    // k ln 2: the product of its first part and k is exact.
    let ln2 = ln2_parts(f);
    let main = exact_sum(k * ln2.0, log.high);
    exact_sum_ordered(main.high, main.low + (log.low + k * ln2.1))
}
