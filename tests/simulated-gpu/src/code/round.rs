//! Single rounding from wider to narrower floats.
//!
//! Rounding twice may give a wrong result, unless the first rounding is "to odd": an inexact value becomes the
//! neighbour whose last bit is one (Boldo and Melquiond, "When double rounding is odd", 2005). So results are computed
//! in `f64`, rounded to odd if they are inexact.

use half::{bf16, f16};

use super::{Type, TypeKind};

/// Canonical 16-bit NaN that arithmetic returns; payloads are not kept.
pub const NAN_16: u64 = 0x7fff;
/// Canonical 32-bit NaN that arithmetic returns.
pub const NAN_32: u64 = 0x7fff_ffff;

/// Rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Rounds to the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
    /// Rounds to the nearest, ties away from zero; only from singles to TF32.
    Away,
}

/// Bits of a single that TF32 does not have.
const BEYOND_TF32: u32 = (1 << 13) - 1;

/// Returns the value in a slot of a floating-point type, as an exact `f64`.
pub fn read(ty: Type, slot: u64) -> f64 {
    match (ty.kind, ty.bits) {
        (TypeKind::Brain, _) => f64::from(bf16::from_bits(slot as u16)),
        (TypeKind::Tensor, _) => f64::from(f32::from_bits(slot as u32 & !BEYOND_TF32)),
        (_, 16) => f64::from(f16::from_bits(slot as u16)),
        (_, 32) => f64::from(f32::from_bits(slot as u32)),
        _ => f64::from_bits(slot),
    }
}

/// Returns the bits of the nearest value of a type.
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

/// Returns the bits of the TF32 value nearest to a single, ties away from zero; infinity on overflow.
pub fn nearest_tensor(value: f32) -> u64 {
    if value.is_nan() {
        return NAN_32;
    }
    u64::from((value.to_bits() + BEYOND_TF32.div_ceil(2)) & !BEYOND_TF32)
}

/// Returns the bits of a value rounded to a type in a direction.
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
        // A result of zero is replaced by the smallest value with the sign of the direction.
        return if direction == Rounding::Down { sign | 1 } else { 1 };
    }
    if outwards { bits + 1 } else { bits - 1 }
}

/// Returns the sum of two numbers, rounded to odd.
pub fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // Exact error of the sum (Knuth's two-sum).
    let shadow = sum - a;
    let error = (a - (sum - shadow)) + (b - shadow);
    odd(sum, error)
}

/// Converts an integer to a float, rounded to odd.
pub fn odd_integer(value: i128) -> f64 {
    let nearest = value as f64;
    // The magnitude is at most 2^64, so the difference is small and exact.
    odd(nearest, (value - nearest as i128) as f64)
}

/// Rounds to odd: `nearest`, or if it is even and `error` is not zero, its neighbour on the side of `error`.
fn odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || nearest.to_bits() & 1 == 1 {
        nearest
    } else if error > 0.0 {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}

/// Returns the nearest `f32`, or if that is inexact the neighbour whose last bit is one, so that a later rounding of
/// the result is correct.
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
