//! Floating-point formats of 16 bits and below: decode to `f64`, encode with round to nearest even.

use crate::ElementType;

/// What the highest exponent means.
#[derive(Clone, Copy, PartialEq)]
enum Specials {
    /// Infinities and NaNs, as IEEE 754 has them.
    Ieee,
    /// No infinity; NaN is all ones below the sign.
    Fn,
    /// No infinity, no -0; the pattern of -0 is the one NaN.
    Fnuz,
    /// Every pattern is a finite number; overflow saturates.
    Finite,
}

struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

const fn format_of(ty: ElementType) -> Option<Format> {
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
        ElementType::BF16 => (8, 7, 127, Ieee),
        _ => return None,
    };
    Some(Format { exponent_bits, mantissa_bits, bias, specials })
}

impl Format {
    const fn sign_bit(&self) -> u16 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    const fn top_exponent(&self) -> u16 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// The code of NaN, if there is one.
    const fn nan(&self) -> Option<u16> {
        match self.specials {
            Specials::Ieee => Some(self.top_exponent() | (1 << (self.mantissa_bits - 1))),
            Specials::Fn => Some(self.sign_bit() - 1),
            Specials::Fnuz => Some(self.sign_bit()),
            Specials::Finite => None,
        }
    }

    /// The code of the greatest finite value.
    const fn greatest(&self) -> u16 {
        match self.specials {
            Specials::Ieee => self.top_exponent() - 1,
            Specials::Fn => self.sign_bit() - 2,
            Specials::Fnuz | Specials::Finite => self.sign_bit() - 1,
        }
    }

    fn decode(&self, code: u16) -> f64 {
        let magnitude = code & (self.sign_bit() - 1);
        let sign = if code & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        let mantissa = f64::from(magnitude & ((1 << self.mantissa_bits) - 1));
        match self.specials {
            Specials::Ieee if magnitude == self.top_exponent() => return sign * f64::INFINITY,
            Specials::Ieee if magnitude > self.top_exponent() => return f64::NAN.copysign(sign),
            Specials::Fn if magnitude == self.sign_bit() - 1 => return f64::NAN.copysign(sign),
            Specials::Fnuz if code == self.sign_bit() => return f64::NAN,
            _ => {}
        }
        let field = i32::from(magnitude >> self.mantissa_bits);
        let scale = exp2(field.max(1) - self.bias - self.mantissa_bits as i32);
        let hidden = if field > 0 { exp2(self.mantissa_bits as i32) } else { 0.0 };
        sign * (hidden + mantissa) * scale
    }

    fn encode(&self, x: f64) -> u16 {
        let sign = if x.is_sign_negative() { self.sign_bit() } else { 0 };
        if x.is_nan() {
            // Formats without NaN keep the sign of their zero: what XLA's conversions give.
            return match (self.specials, self.nan()) {
                (Specials::Fnuz, Some(nan)) => nan,
                (_, Some(nan)) => sign | nan,
                (_, None) => self.sign_bit(),
            };
        }
        let magnitude = self.encode_magnitude(x.abs());
        if self.specials == Specials::Fnuz && (magnitude == 0 || magnitude == self.sign_bit()) {
            return magnitude;
        }
        sign | magnitude
    }

    /// The code of a value that is at least +0, or what overflow gives.
    fn encode_magnitude(&self, x: f64) -> u16 {
        let least_exponent = 1 - self.bias;
        let overflow = match self.specials {
            Specials::Ieee => self.top_exponent(),
            Specials::Fn => self.sign_bit() - 1,
            Specials::Fnuz => self.sign_bit(),
            Specials::Finite => self.greatest(),
        };
        if x.is_infinite() {
            return overflow;
        }
        let exponent = exponent_of(x).max(least_exponent);
        if exponent > 2 * (1 << self.exponent_bits) {
            return overflow;
        }
        // In units of the last place the value is rounded to an integer; carries run into the exponent by themselves.
        let units = (x * exp2(self.mantissa_bits as i32 - exponent)).round_ties_even() as u32;
        let code = (((exponent - least_exponent) as u32) << self.mantissa_bits) + units;
        if code > u32::from(self.greatest()) { overflow } else { code as u16 }
    }
}

/// 2^e for exponents in the normal range of `f64`.
fn exp2(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// floor(log2 x) for normal x > 0; -1023 for zero and subnormals, which are below every format here.
fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The value of the pattern `code` of a float type of at most 16 bits, or `None` for wider types.
pub(super) fn decode(ty: ElementType, code: u16) -> Option<f64> {
    if ty == ElementType::F8E8M0FNU {
        return Some(if code == 0xff { f64::NAN } else { exp2(i32::from(code) - 127) });
    }
    Some(format_of(ty)?.decode(code))
}

/// The nearest pattern of a float type of at most 16 bits, or `None` for wider types.
pub(super) fn encode(ty: ElementType, x: f64) -> Option<u16> {
    if ty == ElementType::F8E8M0FNU {
        return Some(encode_e8m0(x));
    }
    Some(format_of(ty)?.encode(x))
}

/// Only powers of two exist here: negatives and zero become NaN's pattern or the least power.
fn encode_e8m0(x: f64) -> u16 {
    if x.is_nan() || x < 0.0 || x.is_infinite() {
        return 0xff;
    }
    let exponent = exponent_of(x);
    if exponent < -127 {
        return 0;
    }
    let fraction = x / exp2(exponent);
    // Half-way goes to the even code.
    let up = fraction > 1.5 || (fraction == 1.5 && (exponent + 127) % 2 == 1);
    (exponent + 127 + i32::from(up)).min(0xff) as u16
}
