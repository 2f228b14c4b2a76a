//! Double-word arithmetic: unevaluated sums of two numbers, for intermediate results beyond one lane's precision.

use crate::lanes::Lanes;

/// Number `high + low`, where `low` is at most half a unit in the last place of `high` unless stated otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Wide<'e, 'ctx> {
    pub high: Lanes<'e, 'ctx>,
    pub low: Lanes<'e, 'ctx>,
}

/// Returns Knuth's exact sum of any two numbers (TwoSum).
pub(crate) fn exact_sum<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Wide<'e, 'ctx> {
    let high = x + y;
    let part = high - x;
    Wide { high, low: (x - (high - part)) + (y - part) }
}

/// Returns Dekker's exact sum for `|x| >= |y|` or `x = 0` (FastTwoSum).
pub(crate) fn exact_sum_ordered<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Wide<'e, 'ctx> {
    let high = x + y;
    Wide { high, low: y - (high - x) }
}

/// Returns the exact product: one FMA if the target has it, otherwise Dekker's split (which overflows for operands
/// within the mantissa's width of the largest number).
pub(crate) fn exact_product<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Wide<'e, 'ctx> {
    let high = x * y;
    if x.float_abilities().fma {
        return Wide { high, low: x.fma(y, -high) };
    }
    let splitter = super::by_precision(x, 4097.0, 134_217_729.0);
    let split = |x: Lanes<'e, 'ctx>| {
        let scaled = x * splitter;
        let top = scaled - (scaled - x);
        (top, x - top)
    };
    let ((a, b), (c, d)) = (split(x), split(y));
    Wide { high, low: ((a * c - high) + a * d + b * c) + b * d }
}

impl<'e, 'ctx> Wide<'e, 'ctx> {
    /// Returns the product with another number, to within a few units in the last place of `low`.
    pub fn times(self, other: Self) -> Self {
        let Wide { high, low } = exact_product(self.high, other.high);
        let low = self.high.fma(other.low, self.low.fma(other.high, low));
        exact_sum_ordered(high, low)
    }

    /// Returns the sum with a number of no greater magnitude.
    pub fn plus_smaller(self, other: Self) -> Self {
        let Wide { high, low } = exact_sum_ordered(self.high, other.high);
        exact_sum_ordered(high, low + (self.low + other.low))
    }
}
