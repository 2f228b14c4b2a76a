//! Powers and roots.

use super::by_precision;
use super::exp::exp_of_wide;
use super::log::{log_wide, with_log_specials};
use super::wide::{Wide, exact_product, exact_sum_ordered};
use crate::lanes::{Lanes, Scalar};

/// Returns `x^y` as defined by IEEE 754: 1 for `x = 1` or `y = 0`, even for NaN; negative `x` only with integral `y`.
/// Error at most 0.95 ulp (f32) and 0.9 ulp (f64).
///
/// Subnormal operands are not treated as zero even if subnormals are flushed: as zeros, negative and NaN bases would
/// have powers.
pub fn pow<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (magnitude, infinity) = (x.fabs(), x.constant(f64::INFINITY));
    let log = log_wide(magnitude);
    // For exponents as small as the least normal number, the power is 1 + y log x and rounds to 1.
    let (x, y) = (x.without_subnormals(), y.without_subnormals());
    let log_high = with_log_specials(x.fabs(), log.high);
    // y log x in two words. y is clamped so that no intermediate product overflows. If the product is beyond all
    // exponents of the type or not finite, the first word is sufficient.
    let limit = by_precision(x, 2f64.powi(100), 2f64.powi(900));
    let factor = y.within(-limit, limit);
    let product = exact_product(factor, log_high);
    let low = factor.fma(log.low, product.low);
    let moderate = product.high.fabs().lt(2048.0);
    let main = moderate.select(exact_sum_ordered(product.high, low).high, product.high);
    let rest = moderate.select(exact_sum_ordered(product.high, low).low, 0.0);
    let power = exp_of_wide(Wide { high: main, low: rest });
    let integral = y.truncate().eq(y);
    let half = y * 0.5;
    let odd = integral & half.truncate().ne(half);
    let power = (odd & x.bits().lt(0)).select(-power, power);
    let undefined = x.lt(0.0) & x.gt(-infinity) & !integral;
    let power = undefined.select(x.constant(f64::NAN), power);
    let one = x.eq(1.0) | y.eq(0.0) | (x.eq(-1.0) & y.fabs().eq(infinity));
    one.select(x.constant(1.0), power)
}

/// Returns `x^(1/3)`, also for negative numbers. Error at most 0.8 ulp (f32) and 0.75 ulp (f64).
pub fn cbrt<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let magnitude = x.fabs();
    // Scale up small numbers for which the residue below would be subnormal.
    let (small, lift, drop) = by_precision(x, (-90, 60, -20), (-900, 120, -40));
    let small = magnitude.lt(2f64.powi(small));
    let a = small.select(magnitude * 2f64.powi(lift), magnitude);
    let r = inverse_cube_root(a);
    // Compute the root, then one Newton step with an exact residue.
    let y = a * r * r;
    let square = exact_product(y, y);
    let residue = (-square.high).fma(y, a) - square.low * y;
    let y = residue.fma(r * r * (1.0 / 3.0), y);
    let y = small.select(y * 2f64.powi(drop), y);
    let finite = magnitude.gt(0.0) & magnitude.lt(f64::INFINITY);
    finite.select(y.copysign(x), x)
}

/// Returns `a^(-1/3)` to nearly the precision of the lanes, without a division. One third of the exponent field,
/// negated, is an initial guess within 4 %; each step raises the error to almost its fourth power.
fn inverse_cube_root<'e, 'ctx>(a: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let mut r = if a.scalar() == Scalar::F64 {
        // The upper halves of the bits suffice for the guess, and every target can convert them.
        let upper = a.bits().lshr(32).small_to_float();
        let guess = upper.fma(-1.0 / 3.0, f64::from(0x553e_f0ff_u32));
        (guess.nearest_multiple(1.0).small_to_int() << 32).as_float()
    } else {
        let guess = a.bits().signed_to_float(Scalar::F32).fma(-1.0 / 3.0, f64::from(0x54a2_fa8c_u32));
        guess.float_to_signed(32).as_float()
    };
    let steps = by_precision(a, 2, 3);
    for _ in 0..steps {
        // With c = 1 - a r^3: (1 - c)^(-1/3) = 1 + c/3 + 2 c^2/9 + 14 c^3/81 + ...
        let c = x_minus_product(a, r);
        r = (c * c.polynomial(&[1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0])).fma(r, r);
    }
    r
}

fn x_minus_product<'e, 'ctx>(a: Lanes<'e, 'ctx>, r: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    (-(a * r)).fma(r * r, 1.0)
}

/// Returns `1 / sqrt x`; at zero, infinity with the zero's sign. Error at most 1.5 ulp.
pub fn rsqrt<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    x.constant(1.0) / x.sqrt()
}
