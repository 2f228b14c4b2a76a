//! Rounding away from zero, and exact remainders.

use super::by_precision;
use super::wide::exact_product;
use crate::lanes::Lanes;

/// Rounds to the nearest integral value, ties away from zero. Exact.
pub fn round_away<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let toward_zero = x.truncate();
    let away = toward_zero + x.constant(1.0).copysign(x);
    (x - toward_zero).fabs().ge(0.5).select(away, toward_zero)
}

/// Returns the remainder of the truncated quotient, with the sign of `x`. Exact; NaN for infinite `x` and zero `y`.
pub fn fmod<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (a, b) = (x.fabs(), y.fabs());
    let quotient = (a / b).truncate();
    // The quotient is at most one too large, so the remainder is a multiple of b's last place and below b: exact.
    let usual = a.lt(b).select(a, less_multiple(a, b, quotient));
    let great = !(quotient.lt(f64::from(MOST)));
    let [remainder] = great.rarely([usual], || long_division(a, b));
    remainder.copysign(x)
}

/// Exclusive bound of exact quotients.
const MOST: u32 = 1 << 22;

/// Returns the remainder `a - quotient b`, where the quotient has at most 24 bits and is correct or one too large.
///
/// Near the largest number the product (or its parts, without FMA) would overflow. There both operands are scaled down,
/// which is exact since `b` is not much smaller than `a`. Near the smallest number they are scaled up, so that the low
/// part of the product is not subnormal, which might be flushed.
fn less_multiple<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>, quotient: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (large, small, scale) = by_precision(a, (96, -60, 64), (960, -900, 512));
    let (is_large, is_small) = (a.ge(2.0_f64.powi(large)), a.lt(2.0_f64.powi(small)));
    let power = |exponent: i32| {
        let [down, up] = [exponent, -exponent].map(|exponent| a.constant(2.0_f64.powi(exponent)));
        is_large.select(down, is_small.select(up, 1.0))
    };
    let (a, b, back) = (a * power(-scale), b * power(-scale), power(scale));
    let product = exact_product(quotient, b);
    let rest = (a - product.high) - product.low;
    rest.lt(0.0).select(rest + b, rest) * back
}

/// Divides digit by digit, where each digit is a quotient of at most 2^23: scales the divisor up, then down again.
fn long_division<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 1] {
    let emitter = a.emitter();
    let defined = a.lt(f64::INFINITY) & b.gt(0.0);
    // Lanes without a result, or with a trivial one, participate as 0 mod 1.
    let simple = !defined | b.eq(f64::INFINITY);
    let (start, divisor) = (simple.select(a.constant(0.0), a), simple.select(b.constant(1.0), b));
    let digit = f64::from(MOST);
    let [scaled] = emitter.repeat_while(
        [divisor],
        |[scaled]| scaled.le(start * (1.0 / digit)),
        |[scaled]| [scaled.le(start * (1.0 / digit)).select(scaled * digit, scaled)],
    );
    let [rest, _] = emitter.repeat_while(
        [start, scaled],
        |[_, scaled]| scaled.ge(divisor),
        |[rest, scaled]| {
            let next = rest.ge(scaled).select(less_multiple(rest, scaled, (rest / scaled).truncate()), rest);
            [scaled.ge(divisor).select(next, rest), scaled * (1.0 / digit)]
        },
    );
    let answer = b.eq(f64::INFINITY).select(a, rest);
    [defined.select(answer, f64::NAN)]
}
