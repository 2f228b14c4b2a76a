//! Rounding away from zero, and exact remainders.

use super::by_precision;
use super::wide::exact_product;
use crate::lanes::Lanes;

/// To the nearest integral value, ties away from zero. Exact.
pub fn round_away<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let toward_zero = x.truncate();
    let away = toward_zero + x.constant(1.0).copysign(x);
    (x - toward_zero).fabs().ge(0.5).select(away, toward_zero)
}

/// The remainder of the truncated quotient, with the sign of `x`. Exact; NaN for infinite `x` and zero `y`.
pub fn fmod<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (a, b) = (x.fabs(), y.fabs());
    let quotient = (a / b).truncate();
    // With the quotient at most one too great, what is left is a multiple of b's last place and below b: exact.
    let usual = a.lt(b).select(a, less_multiple(a, b, quotient));
    let great = !(quotient.lt(f64::from(MOST)));
    let [remainder] = great.rarely([usual], || long_division(a, b));
    remainder.copysign(x)
}

/// Quotients below this are exact.
const MOST: u32 = 1 << 22;

/// `a - quotient b`, where the quotient, of at most 24 bits, is right or one too great.
///
/// Near the largest number the product, or the parts that it is made of without FMA, would overflow: there both are
/// scaled down, which is exact, since `b` is not much smaller than `a`. Near the least they are scaled up, so that what
/// the product loses is no subnormal number, which may be flushed.
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

/// Digit by digit, each digit a quotient of at most 2^23: the divisor is scaled up, and down again.
fn long_division<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 1] {
    let emitter = a.emitter();
    let defined = a.lt(f64::INFINITY) & b.gt(0.0);
    // Lanes that have no answer, or have it at once, take part as 0 mod 1.
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
