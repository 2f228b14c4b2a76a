//! Floating-point formats: exact widening to `f64`, and narrowing with one rounding to nearest even.
//!
//! One description serves every float type except `f8e8m0fnu`, which has neither sign nor mantissa. Widening and
//! narrowing preserve NaN payloads, so every bit pattern round-trips.

use crate::ElementType;

/// Meaning of the bit patterns with the highest exponent, and of the pattern of -0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FloatSpecials {
    /// Infinities and NaNs, as in IEEE 754.
    Ieee,
    /// No infinity; NaN is all ones below the sign.
    Fn,
    /// No infinity and no -0; the pattern of -0 is the only NaN.
    Fnuz,
    /// Every pattern is a finite number; overflow saturates.
    Finite,
}

/// Bit fields of a format: sign, exponent, mantissa, from the most significant bit down.
#[derive(Clone, Copy, Debug)]
pub struct FloatFormat {
    /// Width of the exponent field in bits.
    pub exponent_bits: u32,
    /// Width of the stored mantissa in bits.
    pub mantissa_bits: u32,
    /// Value of the exponent field that means 2^0.
    pub bias: i32,
    /// Meaning of the special bit patterns.
    pub specials: FloatSpecials,
}

impl FloatFormat {
    /// Returns the format of a float type; `None` for `f8e8m0fnu` and for types other than floats.
    pub const fn of(ty: ElementType) -> Option<FloatFormat> {
        use FloatSpecials::*;
        let (exponent_bits, mantissa_bits, bias, specials) = match ty {
            ElementType::F4E2M1FN => (2, 1, 1, Finite),
            ElementType::F6E3M2FN => (3, 2, 3, Finite),
            ElementType::F6E2M3FN => (2, 3, 1, Finite),
            ElementType::F8E5M2 => (5, 2, 15, Ieee),
            ElementType::F8E4M3 => (4, 3, 7, Ieee),
            ElementType::F8E3M4 => (3, 4, 3, Ieee),
            ElementType::F8E4M3FN => (4, 3, 7, Fn),
            ElementType::F8E4M3B11FNUZ => (4, 3, 11, Fnuz),
            ElementType::F8E4M3FNUZ => (4, 3, 8, Fnuz),
            ElementType::F8E5M2FNUZ => (5, 2, 16, Fnuz),
            ElementType::F16 => (5, 10, 15, Ieee),
            ElementType::BF16 => (8, 7, 127, Ieee),
            ElementType::F32 => (8, 23, 127, Ieee),
            ElementType::F64 => (11, 52, 1023, Ieee),
            _ => return None,
        };
        Some(FloatFormat { exponent_bits, mantissa_bits, bias, specials })
    }

    /// Returns the sign bit; the bits below are the magnitude.
    pub const fn sign_bit(&self) -> u64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// Returns the greatest value of the exponent field, at its bit position.
    const fn top_exponent(&self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// Returns the magnitude of the greatest finite value.
    pub const fn greatest(&self) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => self.top_exponent() - 1,
            FloatSpecials::Fn => self.sign_bit() - 2,
            FloatSpecials::Fnuz | FloatSpecials::Finite => self.sign_bit() - 1,
        }
    }

    /// Returns the pattern for a value beyond the finite range: infinity if the format has one, otherwise NaN,
    /// otherwise the greatest value.
    pub const fn overflow(&self, sign: u64) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => sign | self.top_exponent(),
            FloatSpecials::Fn => sign | (self.sign_bit() - 1),
            FloatSpecials::Fnuz => self.sign_bit(),
            FloatSpecials::Finite => sign | self.greatest(),
        }
    }

    /// Returns the pattern of a zero of that sign; of the only zero in a format without -0.
    pub const fn zero(&self, sign: u64) -> u64 {
        match self.specials {
            FloatSpecials::Fnuz => 0,
            FloatSpecials::Ieee | FloatSpecials::Fn | FloatSpecials::Finite => sign,
        }
    }

    /// Whether a pattern is a NaN.
    pub const fn is_nan(&self, pattern: u64) -> bool {
        let magnitude = pattern & (self.sign_bit() - 1);
        match self.specials {
            FloatSpecials::Ieee => magnitude > self.top_exponent(),
            FloatSpecials::Fn => magnitude == self.sign_bit() - 1,
            FloatSpecials::Fnuz => pattern == self.sign_bit(),
            FloatSpecials::Finite => false,
        }
    }

    /// Returns the value of a pattern.
    fn widen(&self, pattern: u64) -> f64 {
        let magnitude = pattern & (self.sign_bit() - 1);
        let sign = if pattern & self.sign_bit() != 0 { 1 << 63 } else { 0 };
        if self.is_nan(pattern) {
            return f64::from_bits(sign | self.widen_nan(magnitude));
        }
        if self.specials == FloatSpecials::Ieee && magnitude == self.top_exponent() {
            return f64::from_bits(sign | f64::INFINITY.to_bits());
        }
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let field = (magnitude >> self.mantissa_bits) as i32;
        let hidden = if field > 0 { 1 << self.mantissa_bits } else { 0 };
        let value = (mantissa | hidden) as f64 * exp2(field.max(1) - self.bias - self.mantissa_bits as i32);
        f64::from_bits(sign | value.to_bits())
    }

    /// Widens a NaN. IEEE NaNs keep their payload in the upper bits of the mantissa.
    const fn widen_nan(&self, magnitude: u64) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => {
                let payload = magnitude & ((1 << self.mantissa_bits) - 1);
                f64::INFINITY.to_bits() | (payload << (52 - self.mantissa_bits))
            }
            FloatSpecials::Fn | FloatSpecials::Fnuz | FloatSpecials::Finite => f64::NAN.to_bits() & !(1 << 63),
        }
    }

    /// Returns the pattern nearest to a value.
    fn narrow(&self, x: f64) -> u64 {
        let sign = if x.is_sign_negative() { self.sign_bit() } else { 0 };
        if x.is_nan() {
            return self.narrow_nan(sign, x.to_bits());
        }
        match self.narrow_magnitude(x.abs()) {
            magnitude if magnitude > self.greatest() => self.overflow(sign),
            0 => self.zero(sign),
            magnitude => sign | magnitude,
        }
    }

    fn narrow_nan(&self, sign: u64, bits: u64) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => {
                let payload = (bits & ((1 << 52) - 1)) >> (52 - self.mantissa_bits);
                let quiet = if payload == 0 { 1 << (self.mantissa_bits - 1) } else { payload };
                sign | self.top_exponent() | quiet
            }
            FloatSpecials::Fn => sign | (self.sign_bit() - 1),
            FloatSpecials::Fnuz => self.sign_bit(),
            // The format has no NaN. XLA's conversions produce the pattern of -0.
            FloatSpecials::Finite => self.sign_bit(),
        }
    }

    /// Returns the magnitude nearest to a value of at least +0; more than [`FloatFormat::greatest`] on overflow.
    fn narrow_magnitude(&self, x: f64) -> u64 {
        let least_exponent = 1 - self.bias;
        let exponent = exponent_of(x).max(least_exponent);
        if exponent > self.bias + 2 {
            return u64::MAX;
        }
        // Round to an integer in units in the last place. A carry propagates into the exponent field, as it should.
        let units = (x * exp2(self.mantissa_bits as i32 - exponent)).round_ties_even() as u64;
        (((exponent - least_exponent) as u64) << self.mantissa_bits) + units
    }
}

/// Returns 2^e for exponents in the normal range of `f64`.
fn exp2(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// Returns floor(log2 x) for normal x > 0; -1023 for zero and subnormals, 1024 for infinity.
fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// Returns the value of the pattern `raw` of a float type, with its NaN payload.
pub(crate) fn widen(ty: ElementType, raw: u64) -> f64 {
    match ty {
        ElementType::F64 => f64::from_bits(raw),
        ElementType::F32 if !f32::from_bits(raw as u32).is_nan() => f64::from(f32::from_bits(raw as u32)),
        // The upper bits of the same `f32`. Exclude NaNs here too, so that the processor does not convert them.
        ElementType::BF16 if raw & 0x7fff <= 0x7f80 => f64::from(f32::from_bits((raw as u32) << 16)),
        ElementType::F8E8M0FNU if raw == 0xff => f64::NAN,
        ElementType::F8E8M0FNU => exp2(raw as i32 - 127),
        // The processor's conversion would quieten signalling NaNs, so NaNs of `f32` take this path too.
        other => FloatFormat::of(other).map_or(f64::NAN, |format| format.widen(raw)),
    }
}

/// Returns the pattern of a float type that is nearest to a value.
pub(crate) fn narrow(ty: ElementType, x: f64) -> u64 {
    match ty {
        ElementType::F64 => x.to_bits(),
        ElementType::F32 if !x.is_nan() => u64::from((x as f32).to_bits()),
        ElementType::F8E8M0FNU => narrow_e8m0(x),
        other => FloatFormat::of(other).map_or(0, |format| format.narrow(x)),
    }
}

/// Rounds a value to a float type.
pub(crate) fn round(ty: ElementType, x: f64) -> f64 {
    match ty {
        ElementType::F64 => x,
        ElementType::F32 if !x.is_nan() => f64::from(x as f32),
        other => widen(other, narrow(other, x)),
    }
}

/// Narrows to `f8e8m0fnu`, which has powers of two only: zero, negative values and infinities become NaN.
///
/// Matches the conversion from `f32` of XLA and `ml_dtypes`: ties round up, and all values below 2^-127, the least
/// power, become 2^-127. Values that round to zero in `f32` count as zero.
fn narrow_e8m0(x: f64) -> u64 {
    const HALF: u32 = 1 << 22;
    match (x as f32).to_bits() {
        0 => 0xff,
        // Negative values have the sign bit set, so their patterns compare greater than infinity.
        bits if bits >= f32::INFINITY.to_bits() => 0xff,
        // 2^-127 is subnormal in f32.
        bits if bits <= HALF => 0,
        bits => u64::from((bits + HALF) >> 23),
    }
}
