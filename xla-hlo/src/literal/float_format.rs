//! Floating-point formats: widen to `f64` exactly, narrow with one rounding to nearest even.
//!
//! One description serves every float type but `f8e8m0fnu`, which has neither sign nor mantissa. NaN payloads survive
//! widening and narrowing, so that every pattern comes back as it was.

use crate::ElementType;

/// Meaning of the highest exponent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FloatSpecials {
    /// Infinities and NaNs, as IEEE 754 has them.
    Ieee,
    /// No infinity; NaN is all ones below the sign.
    Fn,
    /// No infinity, no -0; the pattern of -0 is the one NaN.
    Fnuz,
    /// Every pattern is a finite number; overflow saturates.
    Finite,
}

/// The fields of a format: sign, exponent, mantissa, from the most significant bit down.
#[derive(Clone, Copy, Debug)]
pub struct FloatFormat {
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the mantissa as stored.
    pub mantissa_bits: u32,
    /// An exponent field of so much means 2^0.
    pub bias: i32,
    /// Meaning of the highest exponent.
    pub specials: FloatSpecials,
}

impl FloatFormat {
    /// The format of a float type; `None` for `f8e8m0fnu` and for types other than floats.
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

    /// The bit of the sign; the bits below are the magnitude.
    pub const fn sign_bit(&self) -> u64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The greatest exponent field, in place.
    const fn top_exponent(&self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// The magnitude of the greatest finite value.
    pub const fn greatest(&self) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => self.top_exponent() - 1,
            FloatSpecials::Fn => self.sign_bit() - 2,
            FloatSpecials::Fnuz | FloatSpecials::Finite => self.sign_bit() - 1,
        }
    }

    /// The pattern of a magnitude that no finite value reaches: infinity, else NaN, else the greatest value.
    pub const fn overflow(&self, sign: u64) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => sign | self.top_exponent(),
            FloatSpecials::Fn => sign | (self.sign_bit() - 1),
            FloatSpecials::Fnuz => self.sign_bit(),
            FloatSpecials::Finite => sign | self.greatest(),
        }
    }

    /// The pattern of a zero of that sign, as far as the format has one.
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

    /// The value of a pattern.
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

    /// IEEE NaNs keep their payload in the upper bits of the mantissa.
    const fn widen_nan(&self, magnitude: u64) -> u64 {
        match self.specials {
            FloatSpecials::Ieee => {
                let payload = magnitude & ((1 << self.mantissa_bits) - 1);
                f64::INFINITY.to_bits() | (payload << (52 - self.mantissa_bits))
            }
            FloatSpecials::Fn | FloatSpecials::Fnuz | FloatSpecials::Finite => f64::NAN.to_bits() & !(1 << 63),
        }
    }

    /// The pattern nearest to a value.
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
            // There is no NaN: what XLA's conversions give is the pattern of -0.
            FloatSpecials::Finite => self.sign_bit(),
        }
    }

    /// The magnitude nearest to a value that is at least +0; more than [`FloatFormat::greatest`] when there is none.
    fn narrow_magnitude(&self, x: f64) -> u64 {
        let least_exponent = 1 - self.bias;
        let exponent = exponent_of(x).max(least_exponent);
        if exponent > self.bias + 2 {
            return u64::MAX;
        }
        // In units of the last place the value is rounded to an integer; carries run into the exponent by themselves.
        let units = (x * exp2(self.mantissa_bits as i32 - exponent)).round_ties_even() as u64;
        (((exponent - least_exponent) as u64) << self.mantissa_bits) + units
    }
}

/// 2^e for exponents in the normal range of `f64`.
fn exp2(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// floor(log2 x) for normal x > 0; -1023 for zero and subnormals, 1024 for infinity.
fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The value of the pattern `raw` of a float type, NaN payload included.
pub(crate) fn widen(ty: ElementType, raw: u64) -> f64 {
    match ty {
        ElementType::F64 => f64::from_bits(raw),
        ElementType::F32 if !f32::from_bits(raw as u32).is_nan() => f64::from(f32::from_bits(raw as u32)),
        // The same number with more bits; here, too, the processor must see no NaN.
        ElementType::BF16 if raw & 0x7fff <= 0x7f80 => f64::from(f32::from_bits((raw as u32) << 16)),
        ElementType::F8E8M0FNU if raw == 0xff => f64::NAN,
        ElementType::F8E8M0FNU => exp2(raw as i32 - 127),
        // The processor's conversion would quieten signalling NaNs, so those of f32 come here, too.
        other => FloatFormat::of(other).map_or(f64::NAN, |format| format.widen(raw)),
    }
}

/// The pattern of a float type that is nearest to a value.
pub(crate) fn narrow(ty: ElementType, x: f64) -> u64 {
    match ty {
        ElementType::F64 => x.to_bits(),
        ElementType::F32 if !x.is_nan() => u64::from((x as f32).to_bits()),
        ElementType::F8E8M0FNU => narrow_e8m0(x),
        other => FloatFormat::of(other).map_or(0, |format| format.narrow(x)),
    }
}

/// A value rounded to a float type.
pub(crate) fn round(ty: ElementType, x: f64) -> f64 {
    match ty {
        ElementType::F64 => x,
        ElementType::F32 if !x.is_nan() => f64::from(x as f32),
        other => widen(other, narrow(other, x)),
    }
}

/// Only powers of two exist here: zero, negative values and infinities become NaN.
///
/// As XLA and `ml_dtypes` do it from `f32`: half-way points go up, and all below 2^-127, the least power, becomes that;
/// values that round to zero in `f32` count as zero.
fn narrow_e8m0(x: f64) -> u64 {
    const HALF: u32 = 1 << 22;
    match (x as f32).to_bits() {
        0 => 0xff,
        // Negative values have the sign bit, and so lie above infinity.
        bits if bits >= f32::INFINITY.to_bits() => 0xff,
        // 2^-127 is subnormal in f32.
        bits if bits <= HALF => 0,
        bits => u64::from((bits + HALF) >> 23),
    }
}
