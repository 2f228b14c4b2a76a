//! The two forms of an element: as stored in memory, and as arithmetic wants it.

use xla_hlo::{ElementKind, ElementType, FloatFormat, FloatSpecials};

use super::scalar::{computed_scalar, stored_scalar};
use crate::lanes::{Lanes, Scalar};

/// Computed lanes from stored ones.
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

/// Stored lanes from computed ones, floats rounded to nearest even. Floats may come as `f32` or `f64`.
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

/// An integer of less than 8 bits sign- or zero-extended to its lane; others as they are.
pub(crate) fn normalized<'e, 'ctx>(ty: ElementType, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let unused = i64::from(x.scalar().bits()) - ty.bit_width() as i64;
    match ty.kind() {
        _ if unused <= 0 => x,
        ElementKind::Signed => (x << unused).ashr(unused),
        ElementKind::Unsigned => (x << unused).lshr(unused),
        ElementKind::Pred | ElementKind::Float | ElementKind::Complex => x,
    }
}

/// `f32` lanes that round to any narrower type as the given `f64` lanes would: truncated, with the last bit set where
/// anything was lost ("round to odd"), so that the rounding to come sees on which side of a tie the number lies.
pub(crate) fn for_second_rounding<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if x.scalar() != Scalar::F64 {
        return x;
    }
    let nearest = x.to_float(Scalar::F32);
    let back = nearest.to_float(Scalar::F64);
    let too_great = back.fabs().gt(x.fabs());
    let bits = nearest.bits();
    let truncated = too_great.select(bits - 1, bits);
    // NaN is neither less nor greater than itself.
    let inexact = back.lt(x) | back.gt(x);
    inexact.select(truncated | 1, bits).as_float()
}

/// Integer arithmetic: the instruction of AVX512-BF16 takes subnormals for zero.
fn encode_bf16<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    let last = bits.lshr(16) & 1;
    let rounded = (bits + last + 0x7fff).lshr(16);
    let nan = bits.lshr(16) | 0x40;
    x.is_nan().select(nan, rounded).trunc(16)
}

/// The spacing of subnormals in place of the spacing of `f32`: adding and subtracting it rounds to a multiple of the
/// former; added to a subnormal's bits it makes a float of them.
fn subnormal_anchor(format: &FloatFormat) -> f32 {
    2f32.powi(24 - format.bias - format.mantissa_bits as i32)
}

/// The difference of the exponents' biases, in place in the narrow format.
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
            // The payload's upper part, and a bit that keeps it a NaN.
            let payload = magnitude.lshr(shift) & ((1 << format.mantissa_bits) - 1);
            let pattern = payload | (top_exponent(&format) | (1 << (format.mantissa_bits - 1)));
            nan.select(pattern, rounded) | sign
        }
        FloatSpecials::Fn => nan.select(rounded.int(sign_bit - 1), rounded) | sign,
        FloatSpecials::Finite => nan.select(rounded.int(sign_bit), rounded | sign),
        FloatSpecials::Fnuz => {
            // Neither zero nor NaN, which overflow yields too, has a sign.
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

/// The nearest power of two, half-way points up, and nothing below 2^-127; zero, negative values, infinities and NaN
/// are NaN.
fn encode_power_of_two<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = x.bits();
    // 2^-127 is half of the least normal number of f32.
    let half = 1 << 22;
    let rounded = bits.ule(half).select(bits.int(0), (bits + half).lshr(23));
    let none = bits.eq(0) | bits.uge(i64::from(f32::INFINITY.to_bits()));
    none.select(rounded.int(0xff), rounded).trunc(8)
}

/// Mask of the lanes whose patterns are NaN in a format.
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
