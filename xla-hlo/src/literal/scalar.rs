//! One element of an array as a plain value.

use super::minifloat;
use crate::{ElementKind, ElementType};

/// One element, widened: integers to 64 bits, floats to `f64`, complex to two of them.
///
/// Widening is exact for every element type. Going back rounds floats to nearest even and wraps integers, so an
/// operation done in wide arithmetic and rounded once is the correctly rounded narrow operation for
/// `+ - * / sqrt` on every float type here (the wide format has more than twice the bits).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A truth value.
    Pred(bool),
    /// A signed integer, sign-extended.
    Signed(i64),
    /// An unsigned integer, zero-extended.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// Zero of that type (the least value for `f8e8m0fnu`, which has no zero).
    pub fn zero(ty: ElementType) -> Scalar {
        Scalar::from_i64(ty, 0)
    }

    /// An integer as a value of that type's kind, before rounding.
    pub fn from_i64(ty: ElementType, v: i64) -> Scalar {
        match ty.kind() {
            ElementKind::Pred => Scalar::Pred(v != 0),
            ElementKind::Signed => Scalar::Signed(v),
            ElementKind::Unsigned => Scalar::Unsigned(v as u64),
            ElementKind::Float => Scalar::Float(v as f64),
            ElementKind::Complex => Scalar::Complex(v as f64, 0.0),
        }
    }

    /// Reads an element from its bytes, little-endian, as many as the type is wide.
    pub fn read(ty: ElementType, bytes: &[u8]) -> Scalar {
        let raw = read_le(&bytes[..ty.byte_width().min(8)]);
        match ty.kind() {
            ElementKind::Pred => Scalar::Pred(raw & 0xff != 0),
            ElementKind::Signed => Scalar::Signed(sign_extend(raw, ty.bit_width())),
            ElementKind::Unsigned => Scalar::Unsigned(raw & mask(ty.bit_width())),
            ElementKind::Float => Scalar::Float(read_float(ty, raw)),
            ElementKind::Complex => {
                let part = ty.real_part();
                let half = part.byte_width();
                let at = |b: &[u8]| read_float(part, read_le(b));
                Scalar::Complex(at(&bytes[..half]), at(&bytes[half..2 * half]))
            }
        }
    }

    /// Writes the element into its bytes, rounding floats to nearest even and wrapping integers.
    ///
    /// The kinds must agree; a value of another kind is a bug of the caller and is converted by its number.
    pub fn write(self, ty: ElementType, bytes: &mut [u8]) {
        let width = ty.byte_width();
        let raw = match (ty.kind(), self) {
            (ElementKind::Pred, Scalar::Pred(p)) => u64::from(p),
            (ElementKind::Signed, Scalar::Signed(v)) => (v as u64) & mask(storage_bits(ty)),
            (ElementKind::Unsigned, Scalar::Unsigned(v)) => v & mask(ty.bit_width()),
            (ElementKind::Float, Scalar::Float(v)) => write_float(ty, v),
            (ElementKind::Complex, Scalar::Complex(re, im)) => {
                let part = ty.real_part();
                let half = part.byte_width();
                write_le(write_float(part, re), &mut bytes[..half]);
                write_le(write_float(part, im), &mut bytes[half..2 * half]);
                return;
            }
            _ => unreachable!("a {ty} element was written from {self:?}"),
        };
        // Narrow signed integers are kept sign-extended in their byte, so that equal values have equal bytes.
        let raw = if ty.kind() == ElementKind::Signed { sign_extend(raw, ty.bit_width()) as u64 } else { raw };
        write_le(raw, &mut bytes[..width]);
    }

    /// The value rounded to that type, as it would be read back after a write.
    #[must_use]
    pub fn rounded(self, ty: ElementType) -> Scalar {
        let mut bytes = [0; 16];
        self.write(ty, &mut bytes);
        Scalar::read(ty, &bytes)
    }

    /// The truth value; false for other kinds.
    pub fn as_bool(self) -> bool {
        matches!(self, Scalar::Pred(true))
    }

    /// The integer (or truth value as 0 and 1) as `i128`; `None` for floats and complex.
    pub fn as_i128(self) -> Option<i128> {
        match self {
            Scalar::Pred(p) => Some(i128::from(p)),
            Scalar::Signed(v) => Some(i128::from(v)),
            Scalar::Unsigned(v) => Some(i128::from(v)),
            Scalar::Float(_) | Scalar::Complex(..) => None,
        }
    }
}

fn storage_bits(ty: ElementType) -> usize {
    ty.byte_width() * 8
}

const fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

const fn sign_extend(raw: u64, bits: usize) -> i64 {
    let shift = 64 - bits as u32;
    ((raw << shift) as i64) >> shift
}

fn read_le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |acc, &b| (acc << 8) | u64::from(b))
}

fn write_le(value: u64, bytes: &mut [u8]) {
    let width = bytes.len();
    bytes.copy_from_slice(&value.to_le_bytes()[..width]);
}

fn read_float(ty: ElementType, raw: u64) -> f64 {
    match ty {
        ElementType::F64 => f64::from_bits(raw),
        ElementType::F32 => f64::from(f32::from_bits(raw as u32)),
        narrow => minifloat::decode(narrow, raw as u16).unwrap_or(f64::NAN),
    }
}

fn write_float(ty: ElementType, v: f64) -> u64 {
    match ty {
        ElementType::F64 => v.to_bits(),
        ElementType::F32 => u64::from((v as f32).to_bits()),
        narrow => u64::from(minifloat::encode(narrow, v).unwrap_or(0)),
    }
}
