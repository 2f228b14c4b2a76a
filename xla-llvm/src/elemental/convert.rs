//! Conversions between element types, and bits under another type.

use xla_hlo::{ElementKind, ElementType, Error, Result};

use super::narrow_float;
use super::round::rounded;
use super::value::{Value, lane_scalar};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// The same number in another type: floats round to nearest even, floats to integers truncate and saturate (NaN is 0),
/// integers to integers wrap, anything to `pred` asks whether it is not zero.
pub fn convert<'e, 'ctx>(_: &'e Emitter<'ctx>, x: Value<'e, 'ctx>, to: ElementType) -> Result<Value<'e, 'ctx>> {
    let from = x.element_type();
    if from == to {
        return Ok(x);
    }
    if to.is_complex() {
        let part = to.real_part();
        let real = real_part_as(x, part);
        let imaginary = match x.imaginary() {
            Some(imaginary) => real_part_as(Value::new(from.real_part(), imaginary), part),
            None => real.constant(0.0),
        };
        return Ok(Value::complex(to, real, imaginary));
    }
    if from.is_complex() && to != ElementType::Pred {
        return Err(Error::internal(format!("{from} cannot be converted to {to}; take its real part")));
    }
    if let Some(imaginary) = x.imaginary() {
        return Ok(Value::new(to, x.lanes().ne(0.0) | imaginary.ne(0.0)));
    }
    Ok(Value::new(to, real(x.lanes(), from, to)))
}

fn real_part_as<'e, 'ctx>(x: Value<'e, 'ctx>, to: ElementType) -> Lanes<'e, 'ctx> {
    let from = x.element_type().real_part();
    if from == to { x.lanes() } else { real(x.lanes(), from, to) }
}

fn real<'e, 'ctx>(x: Lanes<'e, 'ctx>, from: ElementType, to: ElementType) -> Lanes<'e, 'ctx> {
    use ElementKind::*;
    match (from.kind(), to.kind()) {
        (Pred, Pred) => x,
        (_, Pred) => {
            if x.is_float() {
                // NaN is not zero: the comparison is true for unordered operands.
                x.ne(0.0) | x.is_nan()
            } else {
                x.ne(0)
            }
        }
        (Pred, Signed | Unsigned) => x.zext(lane_scalar(to).bits()),
        (Pred, Float | Complex) => x.select(float_like(x, to, 1.0), float_like(x, to, 0.0)),
        (Signed, Signed | Unsigned) => wrapped(x.sext(lane_scalar(to).bits()), to),
        (Unsigned, Signed | Unsigned) => wrapped(x.zext(lane_scalar(to).bits()), to),
        (Signed | Unsigned, Float | Complex) => int_to_float(x, from, to),
        (Float | Complex, Signed | Unsigned) => float_to_int(x, to),
        (Float | Complex, Float | Complex) => float_to_float(x, from, to),
    }
}

/// A constant in the lanes of `to`, as wide as `x`.
fn float_like<'e, 'ctx>(x: Lanes<'e, 'ctx>, to: ElementType, value: f64) -> Lanes<'e, 'ctx> {
    let zero = x.emitter().lane_type(lane_scalar(to), x.width()).const_zero();
    x.emitter().lanes(zero).constant(value)
}

/// Integers below 8 bits wrap inside their byte.
pub(super) fn wrapped<'e, 'ctx>(x: Lanes<'e, 'ctx>, ty: ElementType) -> Lanes<'e, 'ctx> {
    let unused = 8 - ty.bit_width() as i64;
    match ty.kind() {
        ElementKind::Signed if unused > 0 => (x << unused).ashr(unused),
        ElementKind::Unsigned if unused > 0 => x & ((1 << ty.bit_width()) - 1),
        _ => x,
    }
}

fn int_to_float<'e, 'ctx>(x: Lanes<'e, 'ctx>, from: ElementType, to: ElementType) -> Lanes<'e, 'ctx> {
    let scalar = lane_scalar(to);
    let signed = from.kind() == ElementKind::Signed;
    let to_float = |x: Lanes<'e, 'ctx>, s: Scalar| if signed { x.signed_to_float(s) } else { x.unsigned_to_float(s) };
    if to.bit_width() >= 32 || from.bit_width() <= 16 {
        // 16 bits and below are exact in f32, so that rounding happens once.
        return rounded(to, to_float(x, scalar));
    }
    // Wider integers round twice through f32: keep what f32 would lose as a sticky bit in the last place.
    let wide = to_float(x, Scalar::F64);
    let nearest = wide.to_float(Scalar::F32);
    rounded(to, odd_f32(wide, nearest))
}

/// f64 to f32 rounded to odd: exact values stay, others get a last bit of 1, so that a later rounding is correct.
fn odd_f32<'e, 'ctx>(wide: Lanes<'e, 'ctx>, nearest: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let back = nearest.to_float(Scalar::F64);
    let bits = nearest.bits();
    let too_far = back.fabs().gt(wide.fabs());
    let truncated = too_far.select(bits - 1, bits);
    let odd = truncated | 1;
    let exact = back.eq(wide) | wide.is_nan();
    exact.select(bits, odd).as_float()
}

fn float_to_int<'e, 'ctx>(x: Lanes<'e, 'ctx>, to: ElementType) -> Lanes<'e, 'ctx> {
    let bits = to.bit_width() as u32;
    let storage = lane_scalar(to).bits();
    let signed = to.kind() == ElementKind::Signed;
    let (least, greatest): (i64, u64) =
        if signed { (i64::MIN >> (64 - bits), (i64::MAX >> (64 - bits)) as u64) } else { (0, u64::MAX >> (64 - bits)) };
    // The conversion of what does not fit is undefined, so lanes are kept inside first.
    let above = 2f64.powi(if signed { bits as i32 - 1 } else { bits as i32 });
    let low = if signed { -above } else { 0.0 };
    let fits = x.ge(low) & x.lt(above);
    let safe = fits.select(x, 0.0);
    // Through 32 bits at least: there are instructions for those.
    let through = storage.max(32);
    let converted =
        if signed || storage < 32 { safe.float_to_signed(through) } else { safe.float_to_unsigned(through) };
    let converted = converted.trunc(storage);
    let saturated = x.ge(above).select(converted.int(greatest as i64), converted.int(least));
    let value = fits.select(converted, saturated);
    // Between -1 and 0, unsigned: truncates to 0, which is what `least` is.
    x.is_nan().select(converted.int(0), value)
}

fn float_to_float<'e, 'ctx>(x: Lanes<'e, 'ctx>, from: ElementType, to: ElementType) -> Lanes<'e, 'ctx> {
    match (lane_scalar(from), lane_scalar(to)) {
        (Scalar::F64, Scalar::F32) if to.bit_width() < 32 && !to.is_complex() => {
            rounded(to, odd_f32(x, x.to_float(Scalar::F32)))
        }
        (a, b) if a == b => rounded(to, x),
        (_, b) => x.to_float(b),
    }
}

/// The same bits under another type of the same width.
pub fn bitcast_convert<'e, 'ctx>(_: &'e Emitter<'ctx>, x: Value<'e, 'ctx>, to: ElementType) -> Result<Value<'e, 'ctx>> {
    let from = x.element_type();
    if from == to {
        return Ok(x);
    }
    if from.bit_width() != to.bit_width() || from.is_complex() || to.is_complex() {
        return Err(Error::internal(format!("{from} to {to} changes the number of elements")));
    }
    let bits = match from.kind() {
        ElementKind::Float => {
            let stored = narrow_float::encode(from, x.lanes());
            if stored.is_float() { stored.bits() } else { stored }
        }
        _ => x.lanes(),
    };
    let lanes = match to.kind() {
        ElementKind::Float => match to {
            ElementType::F16 => bits.cast_bits(Scalar::F16).to_float(Scalar::F32),
            ElementType::F32 | ElementType::F64 => bits.as_float(),
            narrow => narrow_float::decode(narrow, bits),
        },
        _ => wrapped(bits, to),
    };
    Ok(Value::new(to, lanes))
}

/// An integer as a 64-bit index, clamped to `0..=room` in its own signedness.
pub fn clamped_index<'e, 'ctx>(x: Value<'e, 'ctx>, room: u64) -> Lanes<'e, 'ctx> {
    let room = i64::try_from(room).unwrap_or(i64::MAX);
    if x.element_type().kind() == ElementKind::Signed {
        x.lanes().sext(64).smax(0).smin(room)
    } else {
        x.lanes().zext(64).umin(room)
    }
}
