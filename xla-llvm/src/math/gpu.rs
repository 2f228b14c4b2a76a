//! Functions of `f32` for GPUs, based on approximate instructions where their errors do not matter.
//!
//! The documented errors ([`hardware`], [`powers`]) are 2 ulp and more, so such an instruction alone cannot give a
//! result within 2 ulp. The instructions are used if their error is scaled down (in the complements of `tanh` and
//! `erf`), if the result has 16 bits (functions named `brief`), or before a Newton step. Stated errors are the worst
//! over all `f32`, with each instruction at its documented error bound.

pub(super) mod hardware;
mod powers;

use std::f64::consts::{LN_2, LOG2_E};

pub(crate) use hardware::serves;

use super::{erf as error_function, exp as exponential, log as logarithm};
use crate::lanes::{Lanes, Scalar};

/// `log2 e` in two parts.
const LOG2_E_PARTS: (f64, f64) = (1.442_695_021_629_333_5, 1.925_962_989_091_1e-8);

/// Coefficients of `(tanh x - x) / x^3` in `x^2` up to 1.12.
const TANH: &[f64] = &[-0.33333212, 0.13330719, -0.053775534, 0.02118206, -0.0074992254, 0.0019803534, -0.00026857515];

/// Sign bit of an `f32`.
const SIGN: i64 = 1 << 31;

/// Factorization `2^t = 2^k p` with an integral `k`.
struct Power<'e, 'ctx> {
    /// Two powers of two whose product is `2^k`.
    factors: [Lanes<'e, 'ctx>; 2],
    /// Remainder of the exponent, `|f| <= 1/2`.
    f: Lanes<'e, 'ctx>,
}

/// Factorizes `e^x` for `|x| <= 170`.
fn power<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Power<'e, 'ctx> {
    // The low bits of the sum hold k plus twice the exponent bias.
    let big = 1.5 * 2f64.powi(23) + 254.0;
    let sum = x.fma(LOG2_E_PARTS.0, big);
    let k = sum - big;
    let f = x.fma(LOG2_E_PARTS.1, x.fma(LOG2_E_PARTS.0, -k));
    Power { factors: sum.bits().split_power_of_two(), f }
}

/// Returns `e^x`. Error at most 1.1 ulp, subnormal results included. Uses no approximate instruction.
pub(crate) fn exp<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let Power { factors: [first, second], f } = power(x.within(-104.0, 89.0));
    f.polynomial(exponential::EXP2_F32) * first * second
}

/// Returns `e^x` with a relative error of 2^-17 (2^-20 for results below 2^16).
pub(crate) fn exp_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    powers::ex2(x * LOG2_E)
}

/// Returns `e^x` for `x <= 0` with a relative error of 2^-20; 0 for subnormal results.
pub(crate) fn exp_of_negative<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    powers::ex2_flushed(x * LOG2_E)
}

/// Returns `log x`. Error at most 1.0 ulp.
pub(crate) fn log<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let subnormal = x.lt(f64::from(f32::MIN_POSITIVE));
    let bits = subnormal.select(x * 2f64.powi(25), x).bits();
    // 2^k m with 2/3 <= m < 4/3; k is still in the position of the exponent.
    let exponent = (bits - 0x3f2a_aaab) & 0xff80_0000_u32 as i32 as i64;
    let f = (bits - exponent).as_float() - 1.0;
    let k = exponent.signed_to_float(Scalar::F32);
    let k = k.fma(2f64.powi(-23), subnormal.select(x.constant(-25.0), 0.0));
    let square = f * f;
    let log = square.fma(f.fma(f.polynomial(logarithm::CUBIC_F32), -0.5), f);
    let y = k.fma(LN_2, log);
    // Zero, infinity, NaN and negative numbers.
    let positive_and_finite = (x.bits() - 1).ult(i64::from(f32::INFINITY.to_bits()) - 1);
    positive_and_finite.select(y, powers::lg2_of_specials(x))
}

/// Returns `tanh x`. Error at most 2.0 ulp.
pub(crate) fn tanh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs();
    let z = x * x;
    let near = (magnitude * z).fma(z.polynomial(TANH), magnitude);
    // 1 - 2 / (e^2x + 1): the subtrahend is at most a fifth, which scales its error down.
    let power = powers::ex2_flushed(magnitude * (2.0 * LOG2_E));
    let far = hardware::rcp(power + 1.0).fma(-2.0, 1.0);
    // NaN takes the near branch.
    with_sign(magnitude.ge(1.12).select(far, near), x)
}

/// Returns `tanh x` with a relative error of 2^-11 on GPUs with an instruction for it; otherwise as [`tanh`].
pub(crate) fn tanh_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    powers::tanh(x).unwrap_or_else(|| tanh(x))
}

/// Returns `1 / (1 + e^-x)`. Error at most 1.4 ulp, subnormal results included.
pub(crate) fn logistic<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    // Both tails use e^-|x|, which never overflows: s (p + p_low).
    let Power { factors: [first, second], f } = power((-x.fabs()).within(-104.0, 0.0));
    let rest = f * f.polynomial(&exponential::EXP2_F32[1..]);
    let p = rest + 1.0;
    let p_low = rest - (p - 1.0);
    let s = first * second;
    let divisor = p.fma(s, 1.0);
    let divisor_low = p_low.fma(s, p.fma(s, x.constant(1.0) - divisor));
    let negative = x.lt(0.0);
    let (numerator, numerator_low) = (negative.select(p, 1.0), negative.select(p_low, 0.0));
    let reciprocal = hardware::rcp(divisor);
    let quotient = numerator * reciprocal;
    let remainder = (-quotient).fma(divisor, numerator) + (-quotient).fma(divisor_low, numerator_low);
    remainder.fma(reciprocal, quotient) * negative.select(first, 1.0) * negative.select(second, 1.0)
}

/// Returns `1 / (1 + e^-x)` with a relative error of 2^-16.
pub(crate) fn logistic_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let e = powers::ex2(x.fabs() * -LOG2_E);
    x.lt(0.0).select(e, 1.0) * hardware::rcp(e + 1.0)
}

/// Returns `erf x`. Error at most 1.9 ulp.
pub(crate) fn erf<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs().within(0.0, 3.93);
    let near = error_function::near_zero(magnitude, magnitude * magnitude);
    // 1 - erfc x: erfc x is less than a quarter here, which scales its error down.
    let far = x.constant(1.0) - powers::ex2_flushed(magnitude.polynomial(error_function::FAR_F32));
    // NaN takes the near branch.
    with_sign(magnitude.ge(0.82).select(far, near), x)
}

/// Returns `1 / sqrt x`; at zero, infinity with the zero's sign. Error at most 1.1 ulp.
pub(crate) fn rsqrt<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let y = hardware::rsqrt(x);
    let residue = (-(x * y)).fma(y, 1.0);
    let better = (y * 0.5).fma(residue, y);
    better.is_nan().select(y, better)
}

/// Returns `1 / sqrt x` with a relative error of 2^-22.9.
pub(crate) fn rsqrt_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    hardware::rsqrt(x)
}

/// Returns `x / y`. Error at most 2.5 ulp: 2 ulp from the correctly rounded quotient. Division by a constant is
/// correctly rounded, since division by a power of two should be exact.
pub(crate) fn divide<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if y.is_constant() { x / y } else { hardware::divide(x, y) }
}

/// Returns `x / y` with a relative error of 2^-22, for divisor and quotient between 2^-126 and 2^126.
pub(crate) fn divide_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if y.is_constant() { x / y } else { x * hardware::rcp(y) }
}

/// Combines a non-negative number or NaN with the sign of `x`. For `copysign`, LLVM would move the operation after the
/// rounding to 16 bits, where it takes more instructions.
fn with_sign<'e, 'ctx>(magnitude: Lanes<'e, 'ctx>, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    (magnitude.bits() | (x.bits() & SIGN)).as_float()
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Returns two powers of two, as floats, with the product `2^(n - 254)`, where `n` is the lowest 9 bits of these
    /// integers.
    pub(super) fn split_power_of_two(self) -> [Self; 2] {
        // Move half of n into the exponent field, and then the rest of n.
        let first = (self << 22) & i64::from(i32::MIN >> 8);
        let second = (self << 23) - first;
        [first.as_float(), second.as_float()]
    }
}
