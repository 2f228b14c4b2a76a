//! Scalars: single elements of an array as plain values.

use super::float_format;
use crate::{ElementKind, ElementType};

/// Single element in its widened form: integers to 64 bits, floats to `f64`, complex numbers to two `f64`.
///
/// Widening is exact for every element type, NaN payloads included. The conversion back rounds floats to nearest even
/// and wraps integers. An operation in wide arithmetic that is rounded once therefore equals the correctly rounded
/// narrow operation for `+ - * / sqrt` on every float type here: `f64` has more than twice the bits of every narrower
/// type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Truth value.
    Pred(bool),
    /// Signed integer, sign-extended.
    Signed(i64),
    /// Unsigned integer, zero-extended.
    Unsigned(u64),
    /// Floating-point number.
    Float(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// Returns zero of that type; writing it as `f8e8m0fnu`, which has no zero, stores NaN.
    pub fn zero(ty: ElementType) -> Scalar {
        Scalar::from_i64(ty, 0)
    }

    /// Converts an integer to a value of that type's kind, without rounding.
    pub fn from_i64(ty: ElementType, v: i64) -> Scalar {
        match ty.kind() {
            ElementKind::Pred => Scalar::Pred(v != 0),
            ElementKind::Signed => Scalar::Signed(v),
            ElementKind::Unsigned => Scalar::Unsigned(v as u64),
            ElementKind::Float => Scalar::Float(v as f64),
            ElementKind::Complex => Scalar::Complex(v as f64, 0.0),
        }
    }

    /// Reads an element from its little-endian bytes; their number is the width of the type.
    pub fn read(ty: ElementType, bytes: &[u8]) -> Scalar {
        if ty.is_complex() {
            let part = ty.real_part();
            let half = part.byte_width();
            let at = |b: &[u8]| float_format::widen(part, read_le(b));
            return Scalar::Complex(at(&bytes[..half]), at(&bytes[half..2 * half]));
        }
        Scalar::from_bits(ty, read_le(&bytes[..ty.byte_width()]))
    }

    /// Writes the element to its bytes; rounds floats to nearest even and wraps integers.
    ///
    /// The kinds must agree: a value of another kind is a bug in the caller.
    pub fn write(self, ty: ElementType, bytes: &mut [u8]) {
        if let Scalar::Complex(re, im) = self
            && ty.is_complex()
        {
            let part = ty.real_part();
            let half = part.byte_width();
            write_le(float_format::narrow(part, re), &mut bytes[..half]);
            write_le(float_format::narrow(part, im), &mut bytes[half..2 * half]);
            return;
        }
        let raw = self.to_bits(ty);
        // Sign-extend narrow signed integers within their byte, so that equal values have equal bytes.
        let raw = if ty.kind() == ElementKind::Signed { sign_extend(raw, ty.bit_width()) as u64 } else { raw };
        write_le(raw, &mut bytes[..ty.byte_width()]);
    }

    /// Returns the bit pattern of the element in the low [`ElementType::bit_width`] bits, rounded and wrapped like
    /// [`Scalar::write`]. Panics for complex types; convert their parts.
    pub fn to_bits(self, ty: ElementType) -> u64 {
        match (ty.kind(), self) {
            (ElementKind::Pred, Scalar::Pred(p)) => u64::from(p),
            (ElementKind::Signed, Scalar::Signed(v)) => v as u64 & mask(ty.bit_width()),
            (ElementKind::Unsigned, Scalar::Unsigned(v)) => v & mask(ty.bit_width()),
            (ElementKind::Float, Scalar::Float(v)) => float_format::narrow(ty, v),
            _ => unreachable!("a {ty} element cannot be made from {self:?}"),
        }
    }

    /// Returns the element with that pattern in the low bits; zero for complex types, whose parts have separate
    /// patterns.
    pub fn from_bits(ty: ElementType, raw: u64) -> Scalar {
        match ty.kind() {
            ElementKind::Pred => Scalar::Pred(raw & 0xff != 0),
            ElementKind::Signed => Scalar::Signed(sign_extend(raw, ty.bit_width())),
            ElementKind::Unsigned => Scalar::Unsigned(raw & mask(ty.bit_width())),
            ElementKind::Float => Scalar::Float(float_format::widen(ty, raw & mask(ty.bit_width()))),
            ElementKind::Complex => Scalar::zero(ty),
        }
    }

    /// Rounds the value to that type: the value that a read after a write would return.
    #[must_use]
    pub fn rounded(self, ty: ElementType) -> Scalar {
        match self {
            Scalar::Pred(p) => Scalar::Pred(p),
            Scalar::Signed(v) => Scalar::Signed(sign_extend(v as u64, ty.bit_width())),
            Scalar::Unsigned(v) => Scalar::Unsigned(v & mask(ty.bit_width())),
            Scalar::Float(v) => Scalar::Float(float_format::round(ty, v)),
            Scalar::Complex(re, im) => {
                let part = ty.real_part();
                Scalar::Complex(float_format::round(part, re), float_format::round(part, im))
            }
        }
    }

    /// Returns the truth value; false for other kinds.
    pub fn as_bool(self) -> bool {
        matches!(self, Scalar::Pred(true))
    }

    /// Returns the integer (or truth value as 0 and 1) as `i128`; `None` for floats and complex numbers.
    pub fn as_i128(self) -> Option<i128> {
        match self {
            Scalar::Pred(p) => Some(i128::from(p)),
            Scalar::Signed(v) => Some(i128::from(v)),
            Scalar::Unsigned(v) => Some(i128::from(v)),
            Scalar::Float(_) | Scalar::Complex(..) => None,
        }
    }
}

/// Returns a mask of the low `bits` bits.
pub(crate) const fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Interprets the low `bits` bits as a two's complement number.
pub(crate) const fn sign_extend(raw: u64, bits: usize) -> i64 {
    let shift = 64 - bits as u32;
    ((raw << shift) as i64) >> shift
}

/// Reads a little-endian number of 1, 2, 4 or 8 bytes.
fn read_le(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0, |acc, &b| (acc << 8) | u64::from(b)),
    }
}

fn write_le(value: u64, bytes: &mut [u8]) {
    match bytes {
        [a] => *a = value as u8,
        [_, _] => bytes.copy_from_slice(&(value as u16).to_le_bytes()),
        [_, _, _, _] => bytes.copy_from_slice(&(value as u32).to_le_bytes()),
        _ => bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]),
    }
}
