//! Conversions of elements between types, and of floats to fewer bits.

use super::ReducePrecision;
use crate::literal::float_format::FloatFormat;
use crate::{ElementKind, ElementType, Scalar};

/// Converts a number to an element type. The returned value, after it is rounded or wrapped to that type, equals the
/// number rounded once.
///
/// Conversion from floats to integers truncates and saturates; NaN becomes 0. Every number but zero is true. Integers
/// wrap. XLA's LLVM path converts to 8-bit floats by `f16` or `f32` and so may round twice; here, as in `ml_dtypes`
/// from `f32`, there is one rounding.
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

/// Returns the number as an `f64` that rounds to the float type as the number itself would.
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

/// Returns an integer as an `f64` that rounds correctly to a narrower type. Integers of more than 53 bits would be
/// rounded twice. To prevent that, the lost bits are replaced by a sticky bit below the precision of the narrower type.
fn integer_to_float(v: u64, to: ElementType) -> f64 {
    let lost_bits = 11u32.saturating_sub(v.leading_zeros());
    if to == ElementType::F64 || lost_bits == 0 {
        return v as f64;
    }
    let lost = v & ((1 << lost_bits) - 1);
    let kept = v - lost;
    (kept | (u64::from(lost != 0) << lost_bits)) as f64
}

/// Returns a key whose integer order is the total order of bit patterns: -NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN.
///
/// In types whose only NaN has the bit pattern of -0, NaN is ordered like -0.
pub(in crate::ops) fn total_order_key(ty: ElementType, x: Scalar) -> i64 {
    let bits = x.to_bits(ty);
    if !ty.is_signed() {
        return bits as i64;
    }
    let pattern = (bits << (64 - ty.bit_width())) as i64;
    if pattern < 0 { pattern ^ i64::MAX } else { pattern }
}

/// Rounds the mantissa to fewer bits, to nearest even. Then exponents above the reduced range become infinity, and
/// exponents below its normal range zero.
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
        // The exponent field e means 2^(e - bias); `exponent_bits` bits represent exponents from 1 - reach to reach.
        let reach = (1i64 << op.exponent_bits.saturating_sub(1)) - 1;
        match field - i64::from(format.bias) {
            exponent if exponent > reach => format.overflow(sign),
            exponent if exponent < 1 - reach => format.zero(sign),
            _ => sign | magnitude,
        }
    };
    Scalar::from_bits(ty, reduced)
}

/// Rounds to nearest even; a carry propagates into the exponent field.
fn round_mantissa(magnitude: u64, from_bits: u32, to_bits: u32) -> u64 {
    let Some(drop) = from_bits.checked_sub(to_bits).filter(|&drop| drop > 0) else {
        return magnitude;
    };
    let last = magnitude >> drop & 1;
    let half = 1u64 << (drop - 1);
    let rounded = magnitude + (half - 1) + last;
    rounded & !((1 << drop) - 1)
}

/// Reduces the precision of `f8e8m0fnu`, which only has powers of two. Values out of range become NaN, since the type
/// has neither zero nor infinity.
fn reduce_power_of_two(op: &ReducePrecision, x: Scalar) -> Scalar {
    let Scalar::Float(v) = x else { return x };
    let reach = if op.exponent_bits >= 8 { 127 } else { (1 << op.exponent_bits.saturating_sub(1)) - 1 };
    let exponent = libm::ilogb(v);
    let least = if op.exponent_bits >= 8 { -127 } else { 1 - reach };
    Scalar::Float(if (least..=reach).contains(&exponent) { v } else { f64::NAN })
}
