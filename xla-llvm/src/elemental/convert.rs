//! Conversions between element types, by value and by bits.

use xla_hlo::{ElementKind, ElementType, Error, FloatFormat, Result};

use super::complex::parts;
use super::format;
use super::scalar::{computed_scalar, stored_scalar};
use super::value::Value;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// Converts a number to another element type, rounded once to nearest even.
///
/// Floats are truncated to integers with saturation, NaN to 0. Integers wrap. All numbers but zero are true. Complex
/// numbers can be converted only to complex types.
pub fn convert<'e, 'ctx>(_: &'e Emitter<'ctx>, x: Value<'e, 'ctx>, to: ElementType) -> Result<Value<'e, 'ctx>> {
    let from = x.element_type();
    if from == to {
        return Ok(x);
    }
    match (from.is_complex(), to.is_complex()) {
        (false, false) => Ok(real_to(x, to)),
        (false, true) => {
            let re = real_to(x, to.real_part()).lanes();
            Ok(Value::complex(to, re, re.constant(0.0)))
        }
        (true, true) => {
            let parts = parts(x);
            let [re, im] = [parts.re, parts.im].map(|part| part.to_float(computed_scalar(to)));
            Ok(Value::complex(to, re, im))
        }
        (true, false) => {
            Err(Error::invalid_argument(format!("convert cannot make {to} of {from}; take its real part")))
        }
    }
}

fn real_to<'e, 'ctx>(x: Value<'e, 'ctx>, to: ElementType) -> Value<'e, 'ctx> {
    let from = x.element_type();
    match from.kind() {
        _ if from == to => x,
        ElementKind::Float | ElementKind::Complex => float_to(x.lanes(), to),
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
            integer_to(x.lanes(), from.kind() == ElementKind::Signed, to)
        }
    }
}

/// Reinterprets the bits as another element type of the same width.
pub fn bitcast_convert<'e, 'ctx>(_: &'e Emitter<'ctx>, x: Value<'e, 'ctx>, to: ElementType) -> Result<Value<'e, 'ctx>> {
    let from = x.element_type();
    if from == to {
        return Ok(x);
    }
    if from.bit_width() != to.bit_width() || from.is_complex() || to.is_complex() {
        return Err(Error::invalid_argument(format!(
            "bitcast-convert of one element requires types of equal width that are not complex, not {from} and {to}"
        )));
    }
    // Unused bits of narrow integers are copies of the sign; unused bits of narrow floats are zero.
    let bits = x.stored_lanes().cast_bits(Scalar::Int(stored_scalar(from).bits()));
    let bits = match to.kind() {
        ElementKind::Float => low_bits(bits, to),
        _ => format::normalized(to, bits),
    };
    Ok(Value::stored(to, bits.cast_bits(stored_scalar(to))))
}

/// Rounds a float to `exponent_bits` and `mantissa_bits`: to nearest even, then to infinity above the exponent range
/// and to zero below the normal numbers. NaN is preserved.
pub fn reduce_precision<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    x: Value<'e, 'ctx>,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> Result<Value<'e, 'ctx>> {
    let ty = x.element_type();
    if !ty.is_float() || exponent_bits == 0 {
        return Err(Error::invalid_argument(format!(
            "reduce-precision requires a float and at least 1 exponent bit, not {ty} and {exponent_bits}"
        )));
    }
    let stored = x.stored_lanes();
    let bits = stored.cast_bits(Scalar::Int(stored.scalar().bits()));
    let reduced = match FloatFormat::of(ty) {
        Some(format) => reduce_bits(format, bits, exponent_bits, mantissa_bits),
        None => reduce_power_of_two(bits, exponent_bits),
    };
    Ok(Value::stored(ty, reduced.cast_bits(stored.scalar())))
}

/// Converts an integer to a 64-bit index, clamped to `0..=room` in its own signedness.
pub fn clamped_index<'e, 'ctx>(x: Value<'e, 'ctx>, room: u64) -> Lanes<'e, 'ctx> {
    let room = i64::try_from(room).unwrap_or(i64::MAX);
    let lanes = x.lanes();
    let bits = if lanes.scalar().bits() <= 32 && i32::try_from(room).is_ok() { 32 } else { 64 };
    let clamped = match x.element_type().kind() {
        ElementKind::Signed => lanes.sext(bits).smax(0).smin(room),
        _ => lanes.zext(bits).umin(room),
    };
    clamped.zext(64)
}

/// Returns the bits that belong to the type, with the others zero.
fn low_bits<'e, 'ctx>(bits: Lanes<'e, 'ctx>, ty: ElementType) -> Lanes<'e, 'ctx> {
    let unused = i64::from(bits.scalar().bits()) - ty.bit_width() as i64;
    if unused > 0 { (bits << unused).lshr(unused) } else { bits }
}

fn float_to<'e, 'ctx>(x: Lanes<'e, 'ctx>, to: ElementType) -> Value<'e, 'ctx> {
    match to.kind() {
        ElementKind::Pred => Value::new(to, x.ne(0.0)),
        ElementKind::Signed => Value::new(to, x.saturated_signed(to.bit_width() as u32)),
        ElementKind::Unsigned => Value::new(to, x.saturated_unsigned(to.bit_width() as u32)),
        ElementKind::Float | ElementKind::Complex => Value::stored(to, format::encode(to, x)),
    }
}

/// Converts integer lanes; a truth value counts as 0 or 1.
fn integer_to<'e, 'ctx>(x: Lanes<'e, 'ctx>, signed: bool, to: ElementType) -> Value<'e, 'ctx> {
    let extended = |bits: u32| if signed { x.sext(bits) } else { x.zext(bits) };
    match to.kind() {
        ElementKind::Pred => Value::new(to, x.ne(0)),
        ElementKind::Signed | ElementKind::Unsigned => {
            Value::new(to, format::normalized(to, extended(computed_scalar(to).bits())))
        }
        ElementKind::Float | ElementKind::Complex => {
            let float = |x: Lanes<'e, 'ctx>, scalar| match signed {
                true => x.signed_to_float(scalar),
                false => x.unsigned_to_float(scalar),
            };
            let exact = match to {
                ElementType::F64 => float(x, Scalar::F64),
                ElementType::F32 => float(x, Scalar::F32),
                _ if x.scalar().bits() <= 16 => float(x, Scalar::F32),
                // Rounding to the narrow type must see the exact number, not a rounded one.
                _ => float(with_sticky_bit(x, signed), Scalar::F64),
            };
            Value::stored(to, format::encode(to, exact))
        }
    }
}

/// Returns an integer that `f64` holds exactly and that rounds to any type of at most 24 bits like `x`: the bits that
/// `f64` would lose are cleared, and the lowest remaining bit is set if any of them was set (sticky bit).
fn with_sticky_bit<'e, 'ctx>(x: Lanes<'e, 'ctx>, signed: bool) -> Lanes<'e, 'ctx> {
    if x.scalar().bits() <= 32 {
        return x;
    }
    let lost = x & 0xfff;
    let sticky = lost.ne(0).select(x.int(0x1000), 0);
    let cut = (x & !0xfff) | sticky;
    // Small numbers lose no bits and are unchanged.
    let magnitude = if signed { x ^ x.ashr(63) } else { x };
    magnitude.ult(1 << 53).select(x, cut)
}

fn reduce_bits<'e, 'ctx>(
    format: FloatFormat,
    bits: Lanes<'e, 'ctx>,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> Lanes<'e, 'ctx> {
    // Extend narrow types, for the carry out of their magnitudes.
    let lane_bits = bits.scalar().bits();
    let bits = if lane_bits < 32 { bits.zext(32) } else { bits };
    let sign_bit = format.sign_bit() as i64;
    let sign = bits & sign_bit;
    let unrounded = bits & sign_bit.wrapping_sub(1);
    let magnitude = match format.mantissa_bits.checked_sub(mantissa_bits) {
        Some(drop @ 1..) => {
            let last = unrounded.lshr(i64::from(drop)) & 1;
            (unrounded + last + ((1_i64 << (drop - 1)) - 1)) & !((1_i64 << drop) - 1)
        }
        Some(0) | None => unrounded,
    };
    let signed = |pattern: fn(&FloatFormat, u64) -> u64| {
        let [positive, negative] = [0, format.sign_bit()].map(|sign| bits.int(pattern(&format, sign) as i64));
        sign.eq(0).select(positive, negative)
    };
    let overflow = signed(FloatFormat::overflow);
    let mut too_great = magnitude.ugt(format.greatest() as i64);
    let mut reduced = magnitude | sign;
    if exponent_bits < format.exponent_bits {
        // An exponent field e means 2^(e - bias); `exponent_bits` bits cover exponents from 1 - reach to reach.
        let reach = (1_i64 << (exponent_bits - 1)) - 1;
        let field = magnitude.lshr(i64::from(format.mantissa_bits));
        let bias = i64::from(format.bias);
        too_great = too_great | field.gt(bias + reach);
        reduced = field.lt(bias + 1 - reach).select(signed(FloatFormat::zero), reduced);
    }
    let reduced = too_great.select(overflow, reduced);
    format::is_nan(&format, bits).select(bits, reduced).trunc(lane_bits)
}

/// Rounds `f8e8m0fnu`, which contains only powers of two: values out of range become NaN, since it has no zero or
/// infinity.
fn reduce_power_of_two<'e, 'ctx>(bits: Lanes<'e, 'ctx>, exponent_bits: u32) -> Lanes<'e, 'ctx> {
    if exponent_bits >= 8 {
        return bits;
    }
    let reach = (1_i64 << (exponent_bits - 1)) - 1;
    let outside = bits.ult(127 + 1 - reach) | bits.ugt(127 + reach);
    outside.select(bits.int(0xff), bits)
}
