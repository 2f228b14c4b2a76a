//! The exponential function.

use super::by_precision;
use crate::lanes::Lanes;

/// Cody and Waite's reduction `x = k ln 2 + r`, `|r| <= ln 2 / 2`, and the polynomial for the rest.
struct Table {
    /// Beyond these the result is 0 or infinity.
    range: (f64, f64),
    /// `ln 2` in two parts; the first has so few bits that its product with any `k` is exact.
    ln2: (f64, f64),
    /// `(e^r - 1 - r) / r^2`.
    polynomial: &'static [f64],
}

const F32: Table = Table {
    range: (-104.0, 89.0),
    ln2: (0.693359375, -2.121_944_4e-4),
    polynomial: &[0.499999940, 0.166665167, 0.0416681021, 0.00836919248, 0.00138388947],
};

const F64: Table = Table {
    range: (-746.0, 710.0),
    ln2: (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10),
    polynomial: &[
        0.5000000000000011,
        0.16666666666666438,
        0.041666666666525805,
        0.008333333333474566,
        0.001388888894484128,
        0.00019841269554934295,
        2.480149187184948e-05,
        2.755753070074822e-06,
        2.763070376223196e-07,
        2.502444553927189e-08,
    ],
};

/// `e^x`. Error at most 0.9 ulp in both precisions, subnormal results included.
pub fn exp<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let table = by_precision(x, &F32, &F64);
    let x = x.within(table.range.0, table.range.1);
    let k = x.nearest_multiple(std::f64::consts::LOG2_E);
    let (high, low) = (k.fma(-table.ln2.0, x), k * table.ln2.1);
    let r = high - low;
    let q = r.polynomial(table.polynomial);
    // `high` is exact and `low` small, so the sum loses less than `r` has lost already.
    ((q * r).fma(r, -low) + high + 1.0).scale_by_power_of_two(k)
}
