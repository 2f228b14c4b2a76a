//! Inverse hyperbolic functions, as logarithms of sums in double-word arithmetic.

use super::by_precision;
use super::log::{log_of_sum, with_log_specials};
use super::wide::{Wide, exact_product, exact_sum, exact_sum_ordered};
use crate::lanes::Lanes;

/// Returns the number above which `x + sqrt(x^2 + 1)` rounds to `2 x`.
fn asymptotic(x: Lanes<'_, '_>) -> f64 {
    by_precision(x, 1.6e4, 5e8)
}

/// Returns the logarithm of a sum, or of `2 x` in lanes of `huge`, without overflow.
fn log_or_doubled<'e, 'ctx>(huge: Lanes<'e, 'ctx>, x: Lanes<'e, 'ctx>, sum: Wide<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let high = huge.select(x, sum.high);
    let low = huge.select(x.constant(0.0), sum.low);
    let doublings = huge.select(x.constant(1.0), 0.0);
    with_log_specials(high, log_of_sum(Wide { high, low }, Some(doublings)))
}

/// Returns `asinh x`. Error at most 1.25 ulp (f32) and 1.15 ulp (f64).
pub fn asinh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs();
    // x + sqrt(x^2 + 1) = 1 + x + x^2 / (1 + sqrt(x^2 + 1)), where the last term is the smallest.
    let square = magnitude * magnitude;
    let excess = square / ((square + 1.0).sqrt() + 1.0);
    let above_one = exact_sum_ordered(magnitude, excess);
    let sum = exact_sum(x.constant(1.0), above_one.high);
    let sum = Wide { high: sum.high, low: sum.low + above_one.low };
    log_or_doubled(magnitude.gt(asymptotic(x)), magnitude, sum).copysign(x)
}

/// Returns `acosh x`, NaN below 1. Error at most 1.7 ulp.
pub fn acosh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let above_one = x - 1.0;
    let square = above_one.lt(0.0).select(x.constant(f64::NAN), above_one * (above_one + 2.0));
    let root = square.sqrt();
    log_or_doubled(x.gt(asymptotic(x)), x, exact_sum_ordered(x, root))
}

/// Returns `atanh x`, NaN beyond 1. Error at most 1.2 ulp (f32) and 0.9 ulp (f64).
pub fn atanh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs();
    // log((1 + x) / (1 - x)) / 2 = log(1 + 2 x / (1 - x)) / 2, with the quotient in two words.
    let divisor = exact_sum_ordered(x.constant(1.0), -magnitude);
    let reciprocal = x.constant(1.0) / divisor.high;
    let twice = magnitude * 2.0;
    let quotient = twice * reciprocal;
    let product = exact_product(quotient, divisor.high);
    let remainder = (twice - product.high) - product.low - quotient * divisor.low;
    let sum = exact_sum(x.constant(1.0), quotient);
    let sum = Wide { high: sum.high, low: remainder.fma(reciprocal, sum.low) };
    let inside = log_of_sum(sum, None) * 0.5;
    let outside = magnitude.eq(1.0).select(x.constant(f64::INFINITY), f64::NAN);
    magnitude.lt(1.0).select(inside, outside).copysign(x)
}
