//! Hyperbolic functions and the logistic function.

use std::f64::consts::LOG2_E;

use super::exp::{exp_in_two_words, exp2_roughly, expm1};
use super::wide::exact_sum_ordered;
use super::{by_precision, ln2_parts};
use crate::lanes::{Lanes, Scalar};

/// Coefficients of `(sinh r - r) / r^3` and `(cosh r - 1) / r^2` in `r^2` on `|r| <= ln 2 / 2`.
const SINH_F32: &[f64] = &[0.16666667, 0.008333175, 0.00019974119];
const SINH_F64: &[f64] =
    &[0.16666666666666677, 0.008333333333321386, 0.0001984126988681584, 2.7557243451670957e-06, 2.5109321178544986e-08];
const COSH_F32: &[f64] = &[0.5, 0.04166646, 0.0013935426];
const COSH_F64: &[f64] =
    &[0.5000000000000013, 0.04166666666651047, 0.0013888888948355462, 2.4801488506631744e-05, 2.7631809985216196e-07];

/// Coefficients of `(tanh x - x) / x^3` in `x^2` up to 0.55.
const TANH_F32: &[f64] = &[-0.3333332, 0.13332637, -0.053856842, 0.021088233, -0.006295476];

/// Parts of sinh and cosh of a magnitude `x = k ln 2 + r`, by the addition theorems: sinh and cosh of `k ln 2` are sums
/// of powers of two, and those of `r` are short polynomials. No division is needed, and sinh keeps its accuracy near
/// zero. All values are halved, against overflow.
struct Parts<'e, 'ctx> {
    /// `2^k / 4`. Half of sinh of `k ln 2` is `up - down`, half of cosh is `up + down`.
    up: Lanes<'e, 'ctx>,
    /// `2^-k / 4`.
    down: Lanes<'e, 'ctx>,
    sinh_r: Lanes<'e, 'ctx>,
    cosh_r_minus_one: Lanes<'e, 'ctx>,
}

fn parts<'e, 'ctx>(magnitude: Lanes<'e, 'ctx>) -> Parts<'e, 'ctx> {
    let (limit, ln2) = (by_precision(magnitude, 89.5, 710.5), ln2_parts(magnitude));
    let x = magnitude.constant(limit).lesser(magnitude);
    let k = x.nearest_multiple(LOG2_E);
    let (head, low) = (k.fma(-ln2.0, x), k * ln2.1);
    let r = head - low;
    let z = r * r;
    let sinh_r = (z * r).fma(z.polynomial(by_precision(r, SINH_F32, SINH_F64)), -low) + head;
    let cosh_r_minus_one = z * z.polynomial(by_precision(r, COSH_F32, COSH_F64));
    let k = k.small_to_int();
    let (up, down) = ((k - 2).power_of_two_or_zero(), (-k - 2).power_of_two_or_zero());
    Parts { up, down, sinh_r, cosh_r_minus_one }
}

/// Returns `sinh x`. Error at most 1.7 ulp (f32) and 1.8 ulp (f64).
pub fn sinh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs();
    let Parts { up, down, sinh_r, cosh_r_minus_one } = parts(magnitude);
    let (sinh_k, cosh_k) = (up - down, up + down);
    let half = sinh_k.fma(cosh_r_minus_one, cosh_k * sinh_r) + sinh_k;
    // Halving would lose the last bit of a subnormal.
    let linear = by_precision(x, 2.4e-4, 7e-9);
    magnitude.lt(linear).select(x, (half * 2.0).copysign(x))
}

/// Returns `cosh x`. Error at most 1.3 ulp (f32) and 1.15 ulp (f64).
pub fn cosh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let Parts { up, down, sinh_r, cosh_r_minus_one } = parts(x.fabs());
    let (growing, falling) = (cosh_r_minus_one + sinh_r, cosh_r_minus_one - sinh_r + 1.0);
    (up.fma(growing, down * falling) + up) * 2.0
}

/// Returns `tanh x`. Error at most 1.7 ulp (f32) and 1.95 ulp (f64).
pub fn tanh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.constant(by_precision(x, 9.02, 22.0)).lesser(x.fabs());
    if x.scalar() == Scalar::F64 {
        let t = expm1(magnitude * 2.0);
        return (t / (t + 2.0)).copysign(x);
    }
    let z = x * x;
    let near = (x * z).fma(z.polynomial(TANH_F32), x);
    // 1 - 2 / (e^2x + 1): the subtrahend is at most one half, which scales its error down.
    let k = magnitude.nearest_multiple(2.0 * LOG2_E);
    let power = exp2_roughly(magnitude.fma(2.0 * LOG2_E, -k), k);
    let far = x.constant(1.0) - x.constant(2.0) / (power + 1.0);
    // NaN takes the near branch.
    magnitude.ge(0.55).select(far, near).copysign(x)
}

/// Returns `1 / (1 + e^-x)`, subnormal results included. Error at most 0.8 ulp (f32) and 0.7 ulp (f64).
pub fn logistic<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    // Both tails use e^-|x|, which never overflows. It, the divisor and hence the remainder are in two words.
    let e = exp_in_two_words(-x.fabs());
    let negative = x.lt(0.0);
    let (numerator, numerator_low) = (negative.select(e.high, 1.0), negative.select(e.low, 0.0));
    let divisor = exact_sum_ordered(x.constant(1.0), e.high);
    let divisor_low = divisor.low + e.low;
    let reciprocal = x.constant(1.0) / divisor.high;
    let quotient = numerator * reciprocal;
    let remainder = (-quotient).fma(divisor.high, numerator) + (-quotient).fma(divisor_low, numerator_low);
    remainder.fma(reciprocal, quotient)
}
