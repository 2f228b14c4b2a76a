//! Conversions of elements between types, and of floats to fewer bits.

use super::ReducePrecision;
use crate::literal::float_format::FloatFormat;
use crate::{ElementKind, ElementType, Scalar};

/// The number as a value that, rounded or wrapped to the element type, is the number rounded once.
///
/// Floats become integers by truncation, saturating, NaN as 0; everything but zero is true. Integers wrap. XLA's LLVM
/// path goes through `f16` or `f32` on the way to 8-bit floats and so may round twice; here, as in `ml_dtypes` from
/// `f32`, there is one rounding.
pub(super) fn convert(x: Scalar, to: ElementType) -> Scalar {
    match to.kind() {
        ElementKind::Pred => Scalar::Pred(match x {
            Scalar::Pred(p) => p,
            Scalar::Signed(v) => v != 0,
            Scalar::Unsigned(v) => v != 0,
            Scalar::Float(v) => v != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }),
        ElementKind::Signed => Scalar::Signed(match x {
            Scalar::Pred(p) => i64::from(p),
            Scalar::Signed(v) => v,
            Scalar::Unsigned(v) => v as i64,
            Scalar::Float(v) | Scalar::Complex(v, _) => {
                let greatest = i64::MAX >> (64 - to.bit_width());
                (v as i64).clamp(-greatest - 1, greatest)
            }
        }),
        ElementKind::Unsigned => Scalar::Unsigned(match x {
            Scalar::Pred(p) => u64::from(p),
            Scalar::Signed(v) => v as u64,
            Scalar::Unsigned(v) => v,
            Scalar::Float(v) | Scalar::Complex(v, _) => (v as u64).min(u64::MAX >> (64 - to.bit_width())),
        }),
        ElementKind::Float => Scalar::Float(real_number(x, to)),
        ElementKind::Complex => match x {
            Scalar::Complex(re, im) => Scalar::Complex(re, im),
            x => Scalar::Complex(real_number(x, to.real_part()), 0.0),
        },
    }
}

/// The number as an `f64` that rounds to the float type as the number itself would.
fn real_number(x: Scalar, to: ElementType) -> f64 {
    match x {
        Scalar::Pred(p) => f64::from(u8::from(p)),
        Scalar::Signed(v) => {
            let magnitude = integer_to_float(v.unsigned_abs(), to);
            if v < 0 { -magnitude } else { magnitude }
        }
        Scalar::Unsigned(v) => integer_to_float(v, to),
        Scalar::Float(v) | Scalar::Complex(v, _) => v,
    }
}

/// Integers of more than 53 bits would be rounded twice on their way through `f64` to a narrower type. A bit set below
/// what the narrower type keeps, standing for all bits lost, makes the second rounding see the number itself.
fn integer_to_float(v: u64, to: ElementType) -> f64 {
    let lost_bits = 11u32.saturating_sub(v.leading_zeros());
    if to == ElementType::F64 || lost_bits == 0 {
        return v as f64;
    }
    let lost = v & ((1 << lost_bits) - 1);
    let kept = v - lost;
    (kept | (u64::from(lost != 0) << lost_bits)) as f64
}

/// A key whose integer order is the total order of the patterns: -NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN.
///
/// Types with one NaN in the place of -0 have it there in the order, too: the order is of patterns.
pub(in crate::ops) fn total_order_key(ty: ElementType, x: Scalar) -> i64 {
    let bits = x.to_bits(ty);
    if !ty.is_signed() {
        return bits as i64;
    }
    let pattern = (bits << (64 - ty.bit_width())) as i64;
    if pattern < 0 { pattern ^ i64::MAX } else { pattern }
}

/// Rounds the mantissa to fewer bits, to nearest even; then exponents above the range become infinity,
/// those below its normal range zero.
pub(super) fn reduce_precision(op: &ReducePrecision, ty: ElementType, x: Scalar) -> Scalar {
    let Some(format) = FloatFormat::of(ty) else {
        return reduce_power_of_two(op, x);
    };
    let bits = x.to_bits(ty);
    if format.is_nan(bits) {
        return x;
    }
    let sign = bits & format.sign_bit();
    let is_infinite = (bits ^ sign) > format.greatest();
    let magnitude = round_mantissa(bits ^ sign, format.mantissa_bits, op.mantissa_bits);
    let field = (magnitude >> format.mantissa_bits) as i64;
    let reduced = if is_infinite || magnitude > format.greatest() {
        format.overflow(sign)
    } else if op.exponent_bits >= format.exponent_bits {
        sign | magnitude
    } else {
        // The exponent field e means 2^(e - bias); `exponent_bits` bits reach from 1 - reach to reach.
        let reach = (1i64 << op.exponent_bits.saturating_sub(1)) - 1;
        match field - i64::from(format.bias) {
            exponent if exponent > reach => format.overflow(sign),
            exponent if exponent < 1 - reach => format.zero(sign),
            _ => sign | magnitude,
        }
    };
    Scalar::from_bits(ty, reduced)
}

/// To nearest even; a carry runs into the exponent by itself.
fn round_mantissa(magnitude: u64, from_bits: u32, to_bits: u32) -> u64 {
    let Some(drop) = from_bits.checked_sub(to_bits).filter(|&drop| drop > 0) else {
        return magnitude;
    };
    let last = magnitude >> drop & 1;
    let half = 1u64 << (drop - 1);
    let rounded = magnitude + (half - 1) + last;
    rounded & !((1 << drop) - 1)
}

/// `f8e8m0fnu` has powers of two alone, and neither zero nor infinity for values out of range: NaN it is.
fn reduce_power_of_two(op: &ReducePrecision, x: Scalar) -> Scalar {
    let Scalar::Float(v) = x else { return x };
    let reach = if op.exponent_bits >= 8 { 127 } else { (1 << op.exponent_bits.saturating_sub(1)) - 1 };
    let exponent = libm::ilogb(v);
    let least = if op.exponent_bits >= 8 { -127 } else { 1 - reach };
    Scalar::Float(if (least..=reach).contains(&exponent) { v } else { f64::NAN })
}
