//! The two forms of an element: stored as in memory, and computed for arithmetic.

use xla_hlo::{ElementKind, ElementType, FloatFormat, FloatSpecials};

use super::scalar::{computed_scalar, stored_scalar};
use crate::lanes::{Lanes, Scalar};

/// Converts stored lanes to computed ones.
pub(crate) fn decode<'e, 'ctx>(ty: ElementType, stored: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty.kind() {
        ElementKind::Pred => stored.ne(0),
        ElementKind::Signed | ElementKind::Unsigned => normalized(ty, stored),
        ElementKind::Complex => stored,
        ElementKind::Float => match ty {
            ElementType::F32 | ElementType::F64 => stored,
            ElementType::BF16 => (stored.zext(32) << 16).as_float(),
            ElementType::F16 if stored.emitter().target().abilities().half => stored.as_float().to_float(Scalar::F32),
            ElementType::F8E8M0FNU => decode_power_of_two(stored),
            _ => FloatFormat::of(ty).map_or(stored, |format| decode_float(format, stored)),
        },
    }
}

/// Converts computed lanes to stored ones, with floats rounded to nearest even. Floats may be `f32` or `f64`.
pub(crate) fn encode<'e, 'ctx>(ty: ElementType, computed: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty.kind() {
        ElementKind::Pred => computed.zext(8),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Complex => computed,
        ElementKind::Float => match ty {
            ElementType::F32 | ElementType::F64 => computed.to_float(computed_scalar(ty)),
            ElementType::BF16 if computed.emitter().target().compute_capability() >= Some(80) => {
                for_second_rounding(computed).nvptx_bf16_bits()
            }
            ElementType::BF16 => encode_bf16(for_second_rounding(computed)),
            ElementType::F16 if computed.emitter().target().abilities().half => {
                for_second_rounding(computed).to_float(Scalar::F16).bits()
            }
            ElementType::F8E8M0FNU => encode_power_of_two(computed.to_float(Scalar::F32)),
            _ => FloatFormat::of(ty).map_or(computed, |format| {
                encode_float(format, for_second_rounding(computed)).trunc(stored_scalar(ty).bits())
            }),
        },
    }
}

/// Sign- or zero-extends an integer of less than 8 bits to its lane; returns others unchanged.
pub(crate) fn normalized<'e, 'ctx>(ty: ElementType, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let unused = i64::from(x.scalar().bits()) - ty.bit_width() as i64;
    match ty.kind() {
        _ if unused <= 0 => x,
        ElementKind::Signed => (x << unused).ashr(unused),
        ElementKind::Unsigned => (x << unused).lshr(unused),
        ElementKind::Pred | ElementKind::Float | ElementKind::Complex => x,
    }
}

/// Converts `f64` lanes to `f32` lanes that round to any narrower type like the originals: truncates and sets the last
/// bit if the result is inexact ("round to odd"), so that the next rounding recognizes the side of a tie.
pub(crate) fn for_second_rounding<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if x.scalar() != Scalar::F64 {
        return x;
    }
    let nearest = x.to_float(Scalar::F32);
    let back = nearest.to_float(Scalar::F64);
    let too_great = back.fabs().gt(x.fabs());
    let bits = nearest.bits();
    let truncated = too_great.select(bits - 1, bits);
    // Comparisons with NaN are false, so NaN counts as exact.
    let inexact = back.lt(x) | back.gt(x);
    inexact.select(truncated | 1, bits).as_float()
}

/// Rounds to bf16 in integer arithmetic, since the instruction of AVX512-BF16 flushes subnormals to zero.
fn encode_bf16<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    let last = bits.lshr(16) & 1;
    let rounded = (bits + last + 0x7fff).lshr(16);
    let nan = bits.lshr(16) | 0x40;
    x.is_nan().select(nan, rounded).trunc(16)
}

/// Returns a number whose spacing in `f32` equals the spacing of the format's subnormals. Adding and subtracting it
/// rounds to a multiple of that spacing; combined with a subnormal's bits it makes a float of them.
fn subnormal_anchor(format: &FloatFormat) -> f32 {
    2f32.powi(24 - format.bias - format.mantissa_bits as i32)
}

/// Returns the difference of the exponent biases, shifted to the exponent field of the narrow format.
fn rebias(format: &FloatFormat) -> i64 {
    i64::from(127 - format.bias) << format.mantissa_bits
}

fn top_exponent(format: &FloatFormat) -> i64 {
    ((1 << format.exponent_bits) - 1) << format.mantissa_bits
}

fn decode_float<'e, 'ctx>(format: FloatFormat, stored: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = stored.zext(32);
    let sign_bit = format.sign_bit() as i64;
    let magnitude = bits & (sign_bit - 1);
    let shift = i64::from(23 - format.mantissa_bits);
    let normal = (magnitude + rebias(&format)) << shift;
    let anchor = subnormal_anchor(&format);
    let subnormal = (magnitude | i64::from(anchor.to_bits())).as_float() - f64::from(anchor);
    let finite = magnitude.ult(1 << format.mantissa_bits).select(subnormal.bits(), normal);
    let quiet_nan = i64::from(f32::NAN.to_bits());
    let with_specials = match format.specials {
        FloatSpecials::Ieee => {
            let special = (magnitude << shift) | i64::from(f32::INFINITY.to_bits());
            magnitude.uge(top_exponent(&format)).select(special, finite)
        }
        FloatSpecials::Fn => magnitude.eq(sign_bit - 1).select(finite.int(quiet_nan), finite),
        FloatSpecials::Fnuz => (bits & (2 * sign_bit - 1)).eq(sign_bit).select(finite.int(quiet_nan), finite),
        FloatSpecials::Finite => finite,
    };
    let to_top = 31 - i64::from(format.exponent_bits + format.mantissa_bits);
    (with_specials | ((bits & sign_bit) << to_top)).as_float()
}

fn encode_float<'e, 'ctx>(format: FloatFormat, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    let magnitude = bits & 0x7fff_ffff;
    let shift = i64::from(23 - format.mantissa_bits);
    let last = magnitude.lshr(shift) & 1;
    let normal = (magnitude + last + ((1 << (shift - 1)) - 1)).lshr(shift) - rebias(&format);
    let anchor = subnormal_anchor(&format);
    let subnormal = (x.fabs() + f64::from(anchor)).bits() - i64::from(anchor.to_bits());
    let least_normal = i64::from(2f32.powi(1 - format.bias).to_bits());
    let rounded = magnitude.ult(least_normal).select(subnormal, normal);
    let overflow = rounded.int(format.overflow(0) as i64);
    let rounded = rounded.ugt(format.greatest() as i64).select(overflow, rounded);
    let to_bottom = 31 - i64::from(format.exponent_bits + format.mantissa_bits);
    let sign_bit = format.sign_bit() as i64;
    let sign = bits.lshr(to_bottom) & sign_bit;
    let nan = magnitude.ugt(i64::from(f32::INFINITY.to_bits()));
    match format.specials {
        FloatSpecials::Ieee => {
            // The upper part of the payload, and a bit that keeps the result a NaN.
            let payload = magnitude.lshr(shift) & ((1 << format.mantissa_bits) - 1);
            let pattern = payload | (top_exponent(&format) | (1 << (format.mantissa_bits - 1)));
            nan.select(pattern, rounded) | sign
        }
        FloatSpecials::Fn => nan.select(rounded.int(sign_bit - 1), rounded) | sign,
        FloatSpecials::Finite => nan.select(rounded.int(sign_bit), rounded | sign),
        FloatSpecials::Fnuz => {
            // Zero and NaN, which is also the result of overflow, have no sign.
            let plain = rounded.eq(0) | rounded.eq(sign_bit) | nan;
            plain.select(nan.select(rounded.int(sign_bit), rounded), rounded | sign)
        }
    }
}

fn decode_power_of_two<'e, 'ctx>(stored: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = stored.zext(32);
    let power = bits << 23;
    // 2^-127 is subnormal in f32.
    let power = bits.eq(0).select(power.int(1 << 22), power);
    bits.eq(0xff).select(power.int(i64::from(f32::NAN.to_bits())), power).as_float()
}

/// Rounds to the nearest power of two, with ties up and a minimum of 2^-127. Zero, negative values, infinities and NaN
/// become NaN.
fn encode_power_of_two<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    // 2^-127 is half of the least normal number of f32.
    let half = 1 << 22;
    let rounded = bits.ule(half).select(bits.int(0), (bits + half).lshr(23));
    let none = bits.eq(0) | bits.uge(i64::from(f32::INFINITY.to_bits()));
    none.select(rounded.int(0xff), rounded).trunc(8)
}

/// Returns the mask of lanes whose patterns are NaN in a format.
pub(crate) fn is_nan<'e, 'ctx>(format: &FloatFormat, bits: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let sign_bit = format.sign_bit() as i64;
    let magnitude = bits & sign_bit.wrapping_sub(1);
    match format.specials {
        FloatSpecials::Ieee => magnitude.ugt(top_exponent(format)),
        FloatSpecials::Fn => magnitude.eq(sign_bit - 1),
        FloatSpecials::Fnuz => bits.eq(sign_bit),
        FloatSpecials::Finite => bits.mask(false),
    }
}
