//! Evaluator of stochastic-convert.

use super::*;
use crate::ops::checks;
use crate::{ElementKind, ElementType, Scalar};

pub(super) fn convert(operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [x, random] = checks::operands(operands)?;
    let shape = shape.expect_array()?;
    let random_bits = random.array_shape().element_type().bit_width() as i32;
    Literal::from_fn(shape, |i| match (x.get(i), random.get(i)) {
        (Scalar::Float(x), Scalar::Unsigned(random)) => round(x, random, random_bits, shape.element_type()),
        _ => Scalar::zero(shape.element_type()),
    })
}

/// Rounds the magnitude of `x` up if the random bits are below its fraction, which is truncated to a multiple of
/// 2^-random_bits. NaN becomes 0, and values out of range are clamped.
fn round(x: f64, random: u64, random_bits: i32, to: ElementType) -> Scalar {
    let (least, greatest) = range(to);
    if x.is_nan() {
        return Scalar::zero(to);
    }
    let whole = x.abs().trunc();
    let fraction = libm::ldexp(x.abs() - whole, random_bits).trunc();
    let magnitude = if (random as u128) < fraction as u128 { whole + 1.0 } else { whole };
    // Floats above 2^53 have no fraction, so that the sum is exact. The conversion to i128 saturates far out of range.
    let value = magnitude as i128 * if x < 0.0 { -1 } else { 1 };
    let value = value.clamp(least, greatest);
    match to.kind() {
        ElementKind::Signed => Scalar::Signed(value as i64),
        ElementKind::Pred | ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => {
            Scalar::Unsigned(value as u64)
        }
    }
}

/// Returns the least and the greatest value of an integer type.
fn range(ty: ElementType) -> (i128, i128) {
    let bits = ty.bit_width();
    match ty.kind() {
        ElementKind::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        ElementKind::Pred | ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => (0, (1 << bits) - 1),
    }
}
