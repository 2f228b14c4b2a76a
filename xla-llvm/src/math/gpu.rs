//! Functions of `f32` for GPUs, on their approximate instructions where what these may be wrong by does not count.
//!
//! The documented errors ([`hardware`], [`powers`]) are of 2 ulp and more, so that a result within 2 ulp cannot be such
//! an instruction's result alone. They serve where their error counts less than it is (in the complements of `tanh` and
//! `erf`), where the result has 16 bits (the functions named `brief`), and where a step of Newton's follows. Errors are
//! stated as the worst of every `f32` with each instruction as wrong as it may be.

pub(super) mod hardware;
mod powers;

use std::f64::consts::{LN_2, LOG2_E};

pub(crate) use hardware::serves;

use super::{erf as error_function, exp as exponential, log as logarithm};
use crate::lanes::{Lanes, Scalar};

/// `log2 e` in two parts.
const LOG2_E_PARTS: (f64, f64) = (1.442_695_021_629_333_5, 1.925_962_989_091_1e-8);

/// `(tanh x - x) / x^3` in `x^2` up to 1.12.
const TANH: &[f64] = &[-0.33333212, 0.13330719, -0.053775534, 0.02118206, -0.0074992254, 0.0019803534, -0.00026857515];

/// The sign in the bits of an `f32`.
const SIGN: i64 = 1 << 31;

/// `2^t = 2^k p`, where `k` is integral.
struct Power<'e, 'ctx> {
    /// Two powers of two whose product is `2^k`.
    factors: [Lanes<'e, 'ctx>; 2],
    /// The rest of the exponent, `|f| <= 1/2`.
    f: Lanes<'e, 'ctx>,
}

/// `e^x` for `|x| <= 170`, taken apart.
fn power<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Power<'e, 'ctx> {
    // The sum has k and twice the exponents' bias in its low bits.
    let big = 1.5 * 2f64.powi(23) + 254.0;
    let sum = x.fma(LOG2_E_PARTS.0, big);
    let k = sum - big;
    let f = x.fma(LOG2_E_PARTS.1, x.fma(LOG2_E_PARTS.0, -k));
    Power { factors: sum.bits().split_power_of_two(), f }
}

/// `e^x`. Error at most 1.1 ulp, subnormal results included. No instruction is approximate.
pub(crate) fn exp<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let Power { factors: [first, second], f } = power(x.within(-104.0, 89.0));
    f.polynomial(exponential::EXP2_F32) * first * second
}

/// `e^x` with a relative error of 2^-17 (2^-20 where the result is below 2^16).
pub(crate) fn exp_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    powers::ex2(x * LOG2_E)
}

/// `e^x` for `x <= 0` with a relative error of 2^-20; 0 where that is subnormal.
pub(crate) fn exp_of_negative<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    powers::ex2_flushed(x * LOG2_E)
}

/// `log x`. Error at most 1.0 ulp.
pub(crate) fn log<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let subnormal = x.lt(f64::from(f32::MIN_POSITIVE));
    let bits = subnormal.select(x * 2f64.powi(25), x).bits();
    // 2^k m with 2/3 <= m < 4/3, k being in the place of the exponent still.
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

/// `tanh x`. Error at most 2.0 ulp.
pub(crate) fn tanh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs();
    let z = x * x;
    let near = (magnitude * z).fma(z.polynomial(TANH), magnitude);
    // 1 - 2 / (e^2x + 1): what is subtracted is at most a fifth, and its error with it.
    let power = powers::ex2_flushed(magnitude * (2.0 * LOG2_E));
    let far = hardware::rcp(power + 1.0).fma(-2.0, 1.0);
    // NaN is near.
    with_sign(magnitude.ge(1.12).select(far, near), x)
}

/// `tanh x` with a relative error of 2^-11, where the GPU has an instruction for it.
pub(crate) fn tanh_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    powers::tanh(x).unwrap_or_else(|| tanh(x))
}

/// `1 / (1 + e^-x)`. Error at most 1.4 ulp, subnormal results included.
pub(crate) fn logistic<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    // Both tails from e^-|x|, which never overflows: s (p + p_low).
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

/// `1 / (1 + e^-x)` with a relative error of 2^-16.
pub(crate) fn logistic_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let e = powers::ex2(x.fabs() * -LOG2_E);
    x.lt(0.0).select(e, 1.0) * hardware::rcp(e + 1.0)
}

/// `erf x`. Error at most 1.9 ulp.
pub(crate) fn erf<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs().within(0.0, 3.93);
    let near = error_function::near_zero(magnitude, magnitude * magnitude);
    // 1 - erfc x, which is less than a quarter here, and its error with it.
    let far = x.constant(1.0) - powers::ex2_flushed(magnitude.polynomial(error_function::FAR_F32));
    // NaN is near.
    with_sign(magnitude.ge(0.82).select(far, near), x)
}

/// `1 / sqrt x`; infinity of the zero's sign at zero. Error at most 1.1 ulp.
pub(crate) fn rsqrt<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let y = hardware::rsqrt(x);
    let residue = (-(x * y)).fma(y, 1.0);
    let better = (y * 0.5).fma(residue, y);
    better.is_nan().select(y, better)
}

/// `1 / sqrt x` with a relative error of 2^-22.9.
pub(crate) fn rsqrt_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    hardware::rsqrt(x)
}

/// `x / y`. Error at most 2.5 ulp: 2 of the correctly rounded quotient. By a constant it is correctly rounded, since
/// what is divided by powers of two should be exact.
pub(crate) fn divide<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if y.is_constant() { x / y } else { hardware::divide(x, y) }
}

/// `x / y` with a relative error of 2^-22 for a divisor and a quotient within 2^-126 and 2^126.
pub(crate) fn divide_brief<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if y.is_constant() { x / y } else { x * hardware::rcp(y) }
}

/// A number that is not negative, or NaN, with the sign of another. (LLVM moves `copysign` past the rounding to 16
/// bits, where it is long.)
fn with_sign<'e, 'ctx>(magnitude: Lanes<'e, 'ctx>, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    (magnitude.bits() | (x.bits() & SIGN)).as_float()
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Two powers of two, as floats, whose product is `2^(n - 254)`, `n` being the lowest 9 bits of these integers.
    pub(super) fn split_power_of_two(self) -> [Self; 2] {
        // Half of n in place of the exponent, and what is left of it.
        let first = (self << 22) & i64::from(i32::MIN >> 8);
        let second = (self << 23) - first;
        [first.as_float(), second.as_float()]
    }
}
