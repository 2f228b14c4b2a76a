//! Floats of 16 bits and below: patterns in memory, f32 in lanes.

use xla_hlo::ElementType;

use crate::lanes::{Lanes, Scalar};

/// A binary format: how many bits, where one is, and what the top exponent means.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub exponent_bits: u32,
    pub mantissa_bits: u32,
    pub bias: i64,
    pub specials: Specials,
}

/// What patterns at the edge mean.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Specials {
    /// Infinities and NaNs.
    Ieee,
    /// No infinity; all ones is NaN.
    Fn,
    /// No infinity, no -0; its pattern is NaN.
    Fnuz,
    /// All finite; overflow gives the greatest.
    Finite,
}

impl Format {
    /// The format of a narrow type that is not `f8e8m0fnu`, f16 or bf16.
    pub(super) fn of(ty: ElementType) -> Option<Format> {
        use Specials::*;
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
            _ => return None,
        };
        Some(Format { exponent_bits, mantissa_bits, bias, specials })
    }

    fn sign_bit(self) -> i64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    fn top_exponent(self) -> i64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    fn nan(self) -> i64 {
        match self.specials {
            Specials::Ieee => self.top_exponent() | (1 << (self.mantissa_bits - 1)),
            Specials::Fn => self.sign_bit() - 1,
            Specials::Fnuz | Specials::Finite => self.sign_bit(),
        }
    }

    fn greatest(self) -> i64 {
        match self.specials {
            Specials::Ieee => self.top_exponent() - 1,
            Specials::Fn => self.sign_bit() - 2,
            Specials::Fnuz | Specials::Finite => self.sign_bit() - 1,
        }
    }

    fn overflow(self) -> i64 {
        match self.specials {
            Specials::Ieee => self.top_exponent(),
            Specials::Fn => self.sign_bit() - 1,
            Specials::Fnuz => self.sign_bit(),
            Specials::Finite => self.greatest(),
        }
    }
}

/// Stored lanes of a float type as f32 (f64 for f64).
pub(super) fn decode<'e, 'ctx>(ty: ElementType, stored: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty {
        ElementType::F32 | ElementType::F64 => stored,
        ElementType::F16 => stored.to_float(Scalar::F32),
        ElementType::BF16 => (stored.zext(32) << 16).as_float(),
        ElementType::F8E8M0FNU => decode_e8m0(stored.zext(32)),
        other => match Format::of(other) {
            Some(format) => decode_format(format, stored.zext(32)),
            None => stored,
        },
    }
}

/// f32 lanes rounded to the stored pattern of a float type.
pub(super) fn encode<'e, 'ctx>(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty {
        ElementType::F32 | ElementType::F64 => lanes,
        ElementType::F16 => lanes.to_float(Scalar::F16),
        ElementType::BF16 => encode_bf16(lanes).trunc(16),
        ElementType::F8E8M0FNU => encode_e8m0(lanes).trunc(8),
        other => match Format::of(other) {
            Some(format) => encode_format(format, lanes).trunc(8),
            None => lanes,
        },
    }
}

/// The upper half, rounded to nearest even; NaN stays a quiet NaN.
fn encode_bf16<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    let odd = bits.lshr(16) & 1;
    let rounded = (bits + odd + 0x7fff).lshr(16);
    let nan = bits.lshr(16) | 0x40;
    x.is_nan().select(nan, rounded)
}

/// 2^(code - 127); 0xff is NaN; code 0 is 2^-127, subnormal in f32.
fn decode_e8m0<'e, 'ctx>(code: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let normal = code << 23;
    let least = code.int(0x0040_0000);
    let value = code.eq(0).select(least, normal);
    code.eq(0xff).select(code.int(0x7fc0_0000), value).as_float()
}

/// The nearest power of two, half-way to the even code; negatives and NaN are 0xff, what is too small is code 0.
fn encode_e8m0<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    // Rounding the mantissa away carries into the exponent by itself.
    let odd = bits.lshr(23) & 1;
    let normal = (bits + odd + 0x3f_ffff).lshr(23);
    // Subnormals: 2^-127 is half of the least normal; above three quarters it rounds up to code 1.
    let small = bits.ugt(0x0060_0000).select(bits.int(1), 0);
    let code = bits.ult(0x0080_0000).select(small, normal).umin(0xff);
    let invalid = x.is_nan() | (bits.lt(0) & (bits << 1).ne(0));
    let negative_zero = bits.eq(i64::from(i32::MIN));
    let code = negative_zero.select(bits.int(0), code);
    invalid.select(bits.int(0xff), code)
}

/// A small pattern (in 32-bit lanes) as f32: shifted into place and scaled, which handles subnormals by itself.
fn decode_format<'e, 'ctx>(format: Format, code: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let sign_bit = format.sign_bit();
    let magnitude = code & (sign_bit - 1);
    let width = (format.exponent_bits + format.mantissa_bits) as i64;
    let sign = (code & sign_bit) << (31 - width);
    let in_place = (magnitude << (23 - i64::from(format.mantissa_bits))).as_float();
    let scale = 2f64.powi((127 - format.bias) as i32);
    let value = (in_place * scale).bits() | sign;
    let special = |bits: i64| code.int(bits) | sign;
    let value = match format.specials {
        Specials::Ieee => {
            let infinite = magnitude.eq(format.top_exponent()).select(special(0x7f80_0000), value);
            magnitude.ugt(format.top_exponent()).select(special(0x7fc0_0000), infinite)
        }
        Specials::Fn => magnitude.eq(sign_bit - 1).select(special(0x7fc0_0000), value),
        Specials::Fnuz => (code & (2 * sign_bit - 1)).eq(sign_bit).select(code.int(0x7fc0_0000), value),
        Specials::Finite => value,
    };
    value.as_float()
}

/// f32 to a small pattern (in 32-bit lanes), to nearest even.
fn encode_format<'e, 'ctx>(format: Format, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    let magnitude = bits & 0x7fff_ffff;
    let shift = 23 - i64::from(format.mantissa_bits);
    // Normal results: round the mantissa at its last place, then move the exponent to the new bias.
    let odd = magnitude.lshr(shift) & 1;
    let rounded = (magnitude + odd + ((1 << (shift - 1)) - 1)).lshr(shift);
    let normal = rounded - ((127 - format.bias) << format.mantissa_bits);
    // Subnormal results: adding a number whose last place is the format's least step rounds there.
    let exponent = 23 + 1 - format.bias - i64::from(format.mantissa_bits);
    let step = x.constant(2f64.powi(exponent as i32));
    let subnormal = (magnitude.as_float() + step).bits() - step.bits();
    let least_normal = (127 + 1 - format.bias) << 23;
    let code = magnitude.ult(least_normal).select(subnormal, normal);
    // What is beyond the greatest code, infinity included, overflows.
    let huge = magnitude.uge(0x7f80_0000) | code.gt(format.greatest());
    let code = huge.select(bits.int(format.overflow()), code);
    let sign = bits.lshr(31) << i64::from(format.exponent_bits + format.mantissa_bits);
    let nan = bits.int(format.nan());
    match format.specials {
        Specials::Fnuz => {
            let plain = code.eq(0) | code.eq(format.sign_bit());
            let signed = plain.select(code, code | sign);
            x.is_nan().select(nan, signed)
        }
        Specials::Finite => x.is_nan().select(nan, code | sign),
        Specials::Ieee | Specials::Fn => x.is_nan().select(nan | sign, code | sign),
    }
}
