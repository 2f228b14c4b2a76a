//! Arithmetic on the exponent field: rounding to a multiple, powers of two, scaling.

use super::by_precision;
use crate::lanes::{Lanes, Scalar};

/// Returns the number of stored mantissa bits and the exponent's bias.
fn format(x: Lanes<'_, '_>) -> (i64, i64) {
    if x.scalar().bits() == 64 { (52, 1023) } else { (23, 127) }
}

/// Returns 1.5 times the smallest number with a spacing of one: adding it rounds to an integer in the low bits.
fn spacing_one(x: Lanes<'_, '_>) -> f64 {
    by_precision(x, 1.5 * 2f64.powi(23), 1.5 * 2f64.powi(52))
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Rounds `self * factor` to the nearest integral value (ties to even), for results below 2^22 (f32) or 2^51 (f64)
    /// in magnitude. Two cheap instructions on every target.
    pub(crate) fn nearest_multiple(self, factor: f64) -> Self {
        let big = spacing_one(self);
        self.fma(factor, big) - big
    }

    /// Converts a small integral float (below 2^22 for f32, 2^51 for f64) to an integer of the same width, without a
    /// conversion instruction, which not every vector unit has for 64 bits.
    pub(crate) fn small_to_int(self) -> Self {
        let big = spacing_one(self);
        (self + big).bits() - self.constant(big).bits()
    }

    /// Whether arithmetic on subnormal values may [flush](crate::denormals) them.
    pub(crate) fn may_flush(self) -> bool {
        self.emitter.options().flush_denormals
    }

    /// Replaces subnormals by the least normal number of their sign, if arithmetic may flush them.
    pub(crate) fn without_subnormals(self) -> Self {
        if !self.may_flush() {
            return self;
        }
        let least = self.constant(by_precision(self, f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
        // Detects subnormals but not zero, which wraps around.
        let subnormal = (self.fabs().bits() - 1).ult(least.bits() - 1);
        subnormal.select(least.copysign(self), self)
    }

    /// Converts a small integer (below 2^51) to a float of the same width.
    pub(crate) fn small_to_float(self) -> Self {
        if self.scalar().bits() == 32 {
            return self.signed_to_float(Scalar::F32);
        }
        let big = 1.5 * 2f64.powi(52);
        (self + big.to_bits() as i64).as_float() - big
    }

    /// Returns `2^self` for an integral float in the range of normal exponents.
    pub(crate) fn power_of_two(self) -> Self {
        let (mantissa, bias) = format(self);
        // The sum has the biased exponent in its low bits; the shift drops the other bits.
        ((self + (spacing_one(self) + bias as f64)).bits() << mantissa).as_float()
    }

    /// Returns `self * 2^exponent` for an integral float exponent, where operand and result are normal numbers.
    pub(crate) fn add_to_exponent(self, exponent: Self) -> Self {
        let (mantissa, _) = format(self);
        (self.bits() + ((exponent + spacing_one(self)).bits() << mantissa)).as_float()
    }

    /// Returns `2^self` for an integer that does not overflow; zero if the power is subnormal.
    pub(crate) fn power_of_two_or_zero(self) -> Self {
        let (mantissa, bias) = format(self);
        ((self + bias).smax(0) << mantissa).as_float()
    }

    /// Returns `self * 2^exponent`, rounded once, for any integral `exponent` and a `self` that is not subnormal. NaN
    /// is preserved.
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
        // Multiply by two normal factors, so that only the last product rounds. The limit is far beyond the exponents
        // for which every finite operand becomes zero or infinite.
        let limit = (2 * bias - 2) as f64;
        let exponent = exponent.within(-limit, limit);
        let half = exponent.nearest_multiple(0.5);
        self * half.power_of_two() * (exponent - half).power_of_two()
    }

    /// `vscalef`: scales by powers of two, one instruction per register; the width must be a multiple of the register's
    /// lanes.
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
