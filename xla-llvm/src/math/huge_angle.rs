//! Reduction of huge angles modulo pi / 2 after Payne and Hanek: in integers, with only the bits of 2 / pi that matter.

use std::f64::consts::FRAC_PI_2;

use super::wide::{Wide, exact_product, exact_sum_ordered};
use crate::lanes::{Lanes, Scalar};

/// One word of zeros, then the binary fraction of 2 / pi.
const TWO_OVER_PI: [u64; 22] = [
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
    0xa9e391615ee61b08,
];

/// Reduces an f64 `x` of magnitude at least 1 to `[q, r, low]` with `x = q pi / 2 + r + low` modulo 2 pi and `|r| <= pi
/// / 4`. `r` is NaN if `x` is not finite.
///
/// `x = m 2^e` with a 53-bit integer `m`. The bits of 2 / pi before position `e - 2` contribute multiples of 4 to `x 2
/// / pi`, and the bits more than 192 positions after it contribute less than 2^-137. Therefore, the product of `m` and
/// a window of three words determines the quotient modulo 4 and the fraction. The fraction is accurate even for the
/// double that is closest to a multiple of pi / 2, at a distance of 2^-61.
pub(super) fn reduce_huge<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 3] {
    let bits = x.bits();
    let exponent = bits.lshr(52) & 0x7ff;
    let m = (bits & 0xf_ffff_ffff_ffff) | (1 << 52);
    // Bit position in the table: 64 for its leading word of zeros, e = exponent - 1075. Clamped for infinity and NaN.
    let position = (exponent + (64 - 1075 - 2)).smax(0).smin(64 * 18 - 1);
    let word = position.lshr(6);
    let shift = position & 63;
    let table = x.emitter().constant_table("xla.two_over_pi", &TWO_OVER_PI);
    let load = |i: i64| x.emitter().gather_lanes(table, word + i, Scalar::Int(64), None);
    let words = [load(0), load(1), load(2), load(3)];
    let window = |i: usize| words[i].funnel_shift_left(words[i + 1], shift);
    let (w0, w1, w2) = (window(0), window(1), window(2));
    // Compute two words of the fraction of m w / 2^192, with carry.
    let middle = m * w1;
    let low = middle + m.multiply_high_unsigned(w2);
    let carry = low.ult(middle).select(low.int(1), low.int(0));
    let high = m * w0 + m.multiply_high_unsigned(w1) + carry;
    // The first two bits are the quotient, rounded to nearest; the rest becomes a signed fraction of a quadrant.
    let quotient = (high + (1_i64 << 61)).lshr(62);
    let rest = high - (quotient << 62);
    let part = |x: Lanes<'e, 'ctx>, scale: i32| x.signed_to_float(Scalar::F64) * 2f64.powi(scale);
    let (top, next, last) = (part(rest.ashr(32), -30), part(rest & 0xffff_ffff, -62), part(low.lshr(11), -115));
    let t = exact_sum_ordered(top, next);
    let t = Wide { high: t.high, low: t.low + last };
    let t = exact_sum_ordered(t.high, t.low);
    // Multiply by pi / 2.
    let product = exact_product(t.high, x.constant(FRAC_PI_2));
    let low = t.high.fma(6.123233995736766e-17, t.low * FRAC_PI_2) + product.low;
    let r = exact_sum_ordered(product.high, low);
    let finite = exponent.ne(0x7ff);
    [quotient.signed_to_float(Scalar::F64), finite.select(r.high, f64::NAN), r.low]
}
