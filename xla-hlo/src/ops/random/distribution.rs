//! Evaluator of `rng`: Philox bits at the device's counter, mapped to a distribution.
//!
//! Compilers that lower `rng` to other operations follow this file step by step, so that all platforms draw the same
//! numbers (normal floats up to the accuracy of logarithm, sine and cosine):
//!
//! - The bits are the output of rng-bit-generator for the state `(RNG_KEY, counter)`. The number of words is determined
//!   by [`words_of_rng`].
//! - Floats are computed in `f32` from 32-bit words, and then rounded to narrower types; `f64` is computed from 64-bit
//!   words.
//! - A uniform float is `a + u * (b - a)`, where `u` in `[0, 1)` consists of the upper bits of the word, one for each
//!   bit of the mantissa. A result of `b` or more after rounding is replaced by `a`.
//! - A uniform integer is `a` plus the unsigned remainder of a word by `b - a`, in the width of the word.
//! - Normal floats are computed in pairs from two words by the Box-Muller method: `r = sqrt(-2 ln(1 - u))` times cosine
//!   and sine of `2 pi v`. The first half of the words contains all `u`, the second half all `v`. The first half of the
//!   numbers are the cosines, the second half the sines.

use super::eval::philox_bits;
use super::*;
use crate::ops::checks;
use crate::{ArrayShape, ElementKind, ElementType, Scalar};

/// Key of the generator.
pub const RNG_KEY: u64 = 0x5851_F42D_4C95_7F2D;

/// Returns the element type and number of random words that `rng` consumes for an array: 64-bit words for 64-bit
/// elements, otherwise 32-bit words.
pub fn words_of_rng(distribution: RngDistribution, shape: &ArrayShape) -> (ElementType, usize) {
    let wide = shape.element_type().bit_width() > 32;
    let count = shape.element_count();
    let words = match distribution {
        RngDistribution::Uniform => count,
        RngDistribution::Normal => count.next_multiple_of(2),
    };
    (if wide { ElementType::U64 } else { ElementType::U32 }, words)
}

pub(super) fn rng(op: &Rng, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [a, b] = checks::operands(operands)?;
    let shape = shape.expect_array()?;
    let (word, count) = words_of_rng(op.distribution, shape);
    let per_block = 128 / word.bit_width();
    let counter = ev.random_state().advance(count.div_ceil(per_block) as i64);
    let (_, bits) = philox_bits(RNG_KEY, counter, &ArrayShape::new(word, [count]))?;
    let bits = |i: usize| match bits.get(i) {
        Scalar::Unsigned(bits) => bits,
        _ => 0,
    };
    let (a, b) = (a.get(0), b.get(0));
    match op.distribution {
        RngDistribution::Uniform => Literal::from_fn(shape, |i| uniform(shape.element_type(), word, a, b, bits(i))),
        RngDistribution::Normal => {
            let half = count / 2;
            Literal::from_fn(shape, |i| {
                let pair = i % half;
                normal(shape.element_type(), (a, b), (bits(pair), bits(half + pair)), i >= half)
            })
        }
    }
}

/// Returns the halves of the counter, and then advances the counter.
pub(super) fn rng_get_and_update_state(
    op: &RngGetAndUpdateState,
    ev: &mut Evaluator<'_>,
    shape: &Shape,
) -> Result<Literal> {
    let before = ev.random_state().advance(op.delta);
    Literal::from_fn(shape.expect_array()?, |i| Scalar::Unsigned((before >> (64 * i)) as u64))
}

/// Returns the type that is used to compute floats of type `ty`.
fn made_in(ty: ElementType) -> ElementType {
    if ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
}

fn real(x: Scalar) -> f64 {
    match x {
        Scalar::Float(v) => v,
        Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) | Scalar::Complex(..) => f64::NAN,
    }
}

/// Rounds an `f64` to a float type.
fn rounded(ty: ElementType, x: f64) -> f64 {
    real(Scalar::Float(x).rounded(ty))
}

/// Returns a number in `[0, 1)` from the upper bits of a word.
fn unit(made_in: ElementType, bits: u64) -> f64 {
    match made_in {
        ElementType::F64 => (bits >> 12) as f64 * (-52f64).exp2(),
        _ => (bits >> 9) as f64 * (-23f64).exp2(),
    }
}

fn uniform(ty: ElementType, word: ElementType, a: Scalar, b: Scalar, bits: u64) -> Scalar {
    if ty.is_float() {
        let wide = made_in(ty);
        let (a, b) = (real(a), real(b));
        let range = rounded(wide, b - a);
        let scaled = rounded(wide, unit(wide, bits) * range);
        let x = rounded(ty, rounded(wide, scaled + a));
        return Scalar::Float(if x >= b { a } else { x });
    }
    let (a, b) = (a.as_i128().unwrap_or(0) as u64, b.as_i128().unwrap_or(0) as u64);
    let range = Scalar::Unsigned(b.wrapping_sub(a)).to_bits(word);
    let offset = bits.checked_rem(range).unwrap_or(bits);
    let sum = a.wrapping_add(offset);
    match ty.kind() {
        ElementKind::Pred => Scalar::Pred(sum != 0),
        ElementKind::Signed => Scalar::Signed(sum as i64),
        ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => Scalar::Unsigned(sum),
    }
}

fn normal(ty: ElementType, (mean, deviation): (Scalar, Scalar), (u, v): (u64, u64), sine: bool) -> Scalar {
    let wide = made_in(ty);
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(wide, u)));
    let angle = std::f64::consts::TAU * unit(wide, v);
    let direction = if sine { libm::sin(angle) } else { libm::cos(angle) };
    Scalar::Float(real(mean) + radius * direction * real(deviation))
}
