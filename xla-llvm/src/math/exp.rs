//! The exponential function and `expm1`.

use super::wide::{Wide, exact_sum_ordered};
use super::{by_precision, ln2_parts};
use crate::lanes::Lanes;

/// Constants of Cody and Waite's reduction `x = k ln 2 + r` with `|r| <= ln 2 / 2`, and the polynomial in `r`.
struct Table {
    /// Range outside of which the result is 0 or infinity.
    range: (f64, f64),
    /// Range outside of which `e^x - 1` is -1 or infinity.
    range_minus_one: (f64, f64),
    /// Magnitude below which `e^x - 1` is `x`.
    linear: f64,
    /// Coefficients of `(e^r - 1 - r) / r^2`.
    polynomial: &'static [f64],
}

const F32: Table = Table {
    range: (-104.0, 89.0),
    range_minus_one: (-18.0, 88.75),
    linear: 2.98e-8,
    polynomial: &[0.49999994, 0.16666517, 0.041668102, 0.0083691925, 0.0013838895],
};

const F64: Table = Table {
    range: (-746.0, 710.0),
    range_minus_one: (-38.0, 709.8),
    linear: 5.55e-17,
    polynomial: &[
        0.5000000000000011,
        0.16666666666666438,
        0.041666666666525805,
        0.008333333333474566,
        0.001388888894484128,
        0.00019841269554935,
        2.480149187184948e-05,
        2.755753070074822e-06,
        2.763070376223196e-07,
        2.502444553927189e-08,
    ],
};

/// Coefficients of `2^f` on `|f| <= 1/2`.
pub(super) const EXP2_F32: &[f64] =
    &[1.0, std::f64::consts::LN_2, 0.2402265, 0.05550378, 0.009618473, 0.001338518, 0.00015299927];

/// Factorization `e^x = 2^k (1 + (e^r - 1))`.
struct Reduced<'e, 'ctx> {
    k: Lanes<'e, 'ctx>,
    /// Terms of `e^r - 1 = head + tail`; `head` is the larger one.
    head: Lanes<'e, 'ctx>,
    tail: Lanes<'e, 'ctx>,
}

fn reduce<'e, 'ctx>(table: &Table, x: Lanes<'e, 'ctx>, x_low: Option<Lanes<'e, 'ctx>>) -> Reduced<'e, 'ctx> {
    let k = x.nearest_multiple(std::f64::consts::LOG2_E);
    let ln2 = ln2_parts(x);
    let head = k.fma(-ln2.0, x);
    let low = k * ln2.1;
    let low = x_low.map_or(low, |x_low| low - x_low);
    let r = head - low;
    let q = r.polynomial(table.polynomial);
    // `head` is exact and `low` is small: adding them last loses less accuracy than another use of `r`.
    Reduced { k, head, tail: (q * r).fma(r, -low) }
}

impl<'e, 'ctx> Reduced<'e, 'ctx> {
    fn result(self) -> Lanes<'e, 'ctx> {
        (self.tail + self.head + 1.0).scale_by_power_of_two(self.k)
    }
}

/// Returns `e^x`. Error at most 0.9 ulp (f32) and 0.85 ulp (f64), subnormal results included.
pub fn exp<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let table = by_precision(x, &F32, &F64);
    reduce(table, x.within(table.range.0, table.range.1), None).result()
}

/// Returns `e^(high + low)`. `low` must be zero if `high` is beyond the range of the exponential.
pub(super) fn exp_of_wide<'e, 'ctx>(x: Wide<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let table = by_precision(x.high, &F32, &F64);
    reduce(table, x.high.within(table.range.0, table.range.1), Some(x.low)).result()
}

/// Returns `e^x` with most of the error of [`exp`] in a second word.
pub(super) fn exp_in_two_words<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Wide<'e, 'ctx> {
    let table = by_precision(x, &F32, &F64);
    let Reduced { k, head, tail } = reduce(table, x.within(table.range.0, table.range.1), None);
    let main = exact_sum_ordered(x.constant(1.0), head);
    let low = main.low + tail;
    let sum = exact_sum_ordered(main.high, low);
    Wide { high: sum.high.scale_by_power_of_two(k), low: sum.low.scale_by_power_of_two(k) }
}

/// Returns `2^(k + f)` for `|f| <= 1/2` and a normal result, within 2 ulp in f32: for callers that need only a small
/// absolute error.
pub(super) fn exp2_roughly<'e, 'ctx>(f: Lanes<'e, 'ctx>, k: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    f.polynomial(EXP2_F32).add_to_exponent(k)
}

/// Returns `e^x - 1`. Error at most 1.2 ulp (f32) and 1.0 ulp (f64).
pub fn expm1<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let table = by_precision(x, &F32, &F64);
    let (low, high) = table.range_minus_one;
    let Reduced { k, head, tail } = reduce(table, x.within(low, high), None);
    // Use half of 2^k, so that the largest k does not overflow before the result does.
    let half = (k - 1.0).power_of_two();
    let y = half.fma(tail, half.fma(head, half - 0.5)) * 2.0;
    x.fabs().lt(table.linear).select(x, y)
}
