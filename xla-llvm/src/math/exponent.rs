//! Work on the exponent field: rounding to a multiple, powers of two, scaling.

use super::by_precision;
use crate::lanes::{Lanes, Scalar};

/// Bits of the stored mantissa and the exponent's bias.
fn format(x: Lanes<'_, '_>) -> (i64, i64) {
    if x.scalar().bits() == 64 { (52, 1023) } else { (23, 127) }
}

/// 1.5 times the first number whose spacing is one: adding it rounds to an integer, which then stands in the low bits.
fn spacing_one(x: Lanes<'_, '_>) -> f64 {
    by_precision(x, 1.5 * 2f64.powi(23), 1.5 * 2f64.powi(52))
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// The nearest integral value (ties to even) of `self * factor`, for results below 2^22 (f32) or 2^51 (f64) in
    /// magnitude. Two cheap instructions on every target.
    pub(crate) fn nearest_multiple(self, factor: f64) -> Self {
        let big = spacing_one(self);
        self.fma(factor, big) - big
    }

    /// A small integral float (below 2^22 for f32, 2^51 for f64) as an integer of its width, without a conversion,
    /// which not every vector unit has for 64 bits.
    pub(crate) fn small_to_int(self) -> Self {
        let big = spacing_one(self);
        (self + big).bits() - self.constant(big).bits()
    }

    /// Whether arithmetic on subnormal values may [flush](crate::denormals) them.
    pub(crate) fn may_flush(self) -> bool {
        self.emitter.options().flush_denormals
    }

    /// The value, and the least normal number of its sign for a subnormal, if arithmetic may flush it.
    pub(crate) fn without_subnormals(self) -> Self {
        if !self.may_flush() {
            return self;
        }
        let least = self.constant(by_precision(self, f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
        // All subnormals, but not zero, which wraps around.
        let subnormal = (self.fabs().bits() - 1).ult(least.bits() - 1);
        subnormal.select(least.copysign(self), self)
    }

    /// A small integer (below 2^51) as a float of its width.
    pub(crate) fn small_to_float(self) -> Self {
        if self.scalar().bits() == 32 {
            return self.signed_to_float(Scalar::F32);
        }
        let big = 1.5 * 2f64.powi(52);
        (self + big.to_bits() as i64).as_float() - big
    }

    /// `2^self` for an integral float in the range of normal exponents.
    pub(crate) fn power_of_two(self) -> Self {
        let (mantissa, bias) = format(self);
        // The sum has the biased exponent in its low bits; the shift drops all others.
        ((self + (spacing_one(self) + bias as f64)).bits() << mantissa).as_float()
    }

    /// `self * 2^exponent` for an integral float exponent, where operand and result are normal numbers.
    pub(crate) fn add_to_exponent(self, exponent: Self) -> Self {
        let (mantissa, _) = format(self);
        (self.bits() + ((exponent + spacing_one(self)).bits() << mantissa)).as_float()
    }

    /// `2^self` for an integer that is not too big; zero where that is subnormal.
    pub(crate) fn power_of_two_or_zero(self) -> Self {
        let (mantissa, bias) = format(self);
        ((self + bias).smax(0) << mantissa).as_float()
    }

    /// `self * 2^exponent`, rounded once, for an integral `exponent` of any size and a `self` that is not subnormal.
    /// NaN stays.
    pub(crate) fn scale_by_power_of_two(self, exponent: Self) -> Self {
        if self.emitter().target().abilities().avx512 && (self.width() * self.scalar().bits()).is_multiple_of(512) {
            return self.avx512_scalef(exponent);
        }
        let (_, bias) = format(self);
        if super::gpu::serves(self) {
            let exponent = exponent.within(-252.0, 252.0);
            let [first, second] = (exponent + (spacing_one(self) + 254.0)).bits().split_power_of_two();
            return self * first * second;
        }
        // Two factors that are normal numbers, so that only the last product rounds. The clamp is far beyond where
        // every finite operand becomes zero or infinite.
        let limit = (2 * bias - 2) as f64;
        let exponent = exponent.within(-limit, limit);
        let half = exponent.nearest_multiple(0.5);
        self * half.power_of_two() * (exponent - half).power_of_two()
    }

    /// One instruction a register; the width must be a multiple of the register's lanes.
    fn avx512_scalef(self, exponent: Self) -> Self {
        let (lanes, name) = match self.scalar() {
            Scalar::F64 => (8, "llvm.x86.avx512.mask.scalef.pd.512"),
            _ => (16, "llvm.x86.avx512.mask.scalef.ps.512"),
        };
        let mask = self.emitter().int_type(lanes).const_all_ones();
        let current_rounding = self.emitter().int_type(32).const_int(4, false);
        self.in_parts(lanes, exponent, |x, k| {
            let arguments = [x.raw(), k.raw(), x.constant(0.0).raw(), mask.into(), current_rounding.into()];
            x.emitter().intrinsic(name, &[], &arguments).map_or(x, |raw| x.emitter().lanes(raw))
        })
    }
}
