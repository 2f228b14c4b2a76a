//! Rounding from wider to narrower floats, once.
//!
//! A result that is rounded twice may be wrong, unless the first time is "to odd": an inexact value becomes the
//! neighbour whose last bit is one (Boldo and Melquiond, "When double rounding is odd", 2005). So results are computed
//! in `f64`, to odd where that is not exact.

use half::{bf16, f16};

use super::{Type, TypeKind};

/// NaN that arithmetic returns in each width: payloads are not kept.
pub const NAN_16: u64 = 0x7fff;
/// As [`NAN_16`].
pub const NAN_32: u64 = 0x7fff_ffff;

/// A direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
    /// To the nearest, ties away from zero: singles to TF32 alone.
    Away,
}

/// Bits of a single that TF32 has not.
const BEYOND_TF32: u32 = (1 << 13) - 1;

/// The number in a slot of a floating-point type, which an `f64` holds exactly.
pub fn read(ty: Type, slot: u64) -> f64 {
    match (ty.kind, ty.bits) {
        (TypeKind::Brain, _) => f64::from(bf16::from_bits(slot as u16)),
        (TypeKind::Tensor, _) => f64::from(f32::from_bits(slot as u32 & !BEYOND_TF32)),
        (_, 16) => f64::from(f16::from_bits(slot as u16)),
        (_, 32) => f64::from(f32::from_bits(slot as u32)),
        _ => f64::from_bits(slot),
    }
}

/// The bits of the number of a type that is nearest.
pub fn nearest(ty: Type, value: f64) -> u64 {
    match (ty.kind, ty.bits) {
        (TypeKind::Brain | TypeKind::Float, 16) if value.is_nan() => NAN_16,
        (TypeKind::Float, 32) if value.is_nan() => NAN_32,
        (TypeKind::Brain, _) => u64::from(bf16::from_f32(odd_single(value)).to_bits()),
        (_, 16) => u64::from(f16::from_f32(odd_single(value)).to_bits()),
        (_, 32) => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// The bits of the number of TF32 that is nearest to a single, of two the one further from zero: infinity if it is too
/// large.
pub fn nearest_tensor(value: f32) -> u64 {
    if value.is_nan() {
        return NAN_32;
    }
    u64::from((value.to_bits() + BEYOND_TF32.div_ceil(2)) & !BEYOND_TF32)
}

/// The bits of the number of a type next to a value in a direction.
pub fn rounded(ty: Type, value: f64, direction: Rounding) -> u64 {
    let bits = nearest(ty, value);
    let found = read(ty, bits);
    let outwards = match direction {
        _ if value.is_nan() || found == value => return bits,
        Rounding::Nearest | Rounding::Away => return bits,
        Rounding::Zero if found.abs() > value.abs() => false,
        Rounding::Zero => return bits,
        Rounding::Down if found > value => found <= 0.0,
        Rounding::Up if found < value => found >= 0.0,
        Rounding::Down | Rounding::Up => return bits,
    };
    let sign = 1u64 << (ty.bits - 1);
    if found == 0.0 {
        // From zero the next one has the sign of the direction.
        return if direction == Rounding::Down { sign | 1 } else { 1 };
    }
    if outwards { bits + 1 } else { bits - 1 }
}

/// The sum of two numbers, rounded to odd.
pub fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's exact error of a sum.
    let shadow = sum - a;
    let error = (a - (sum - shadow)) + (b - shadow);
    odd(sum, error)
}

/// An integer as a number, rounded to odd.
pub fn odd_integer(value: i128) -> f64 {
    let nearest = value as f64;
    // 2^64 and less in magnitude, so the difference is small and exact.
    odd(nearest, (value - nearest as i128) as f64)
}

/// The neighbour of `nearest` on the side of `error` if the one is even and the other is not zero.
fn odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || nearest.to_bits() & 1 == 1 {
        nearest
    } else if error > 0.0 {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}

/// The nearest `f32`, or where that is not exact the neighbour whose last bit is one: what is rounded from it is
/// rounded once.
pub fn odd_single(value: f64) -> f32 {
    let nearest = value as f32;
    let error = value - f64::from(nearest);
    if !nearest.is_finite() || error == 0.0 || nearest.to_bits() & 1 == 1 {
        nearest
    } else if error > 0.0 {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}
