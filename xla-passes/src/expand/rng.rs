//! Random numbers as random bits made into numbers.

use xla_hlo::ops::random::{RNG_KEY, words_of_rng};
use xla_hlo::ops::{
    BinaryOp, CompareDirection, Rng, RngAlgorithm, RngBitGenerator, RngDistribution, RngGetAndUpdateState, UnaryOp,
};
use xla_hlo::{ArrayShape, ElementType, InstrId, Literal, Module, Op, Result, Scalar, Shape};

use super::Writer;
use crate::{Pass, PassContext};

/// Puts `rng` in terms of `rng-get-and-update-state`, `rng-bit-generator` and elementwise operations.
///
/// It makes numbers as the evaluator does, step by step: even ones are the same bit for bit, normal ones up to the
/// accuracy of logarithm, sine and cosine.
pub struct ExpandRng;

impl Pass for ExpandRng {
    fn name(&self) -> &'static str {
        "expand-rng"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        super::expand_each(module, |graph, id| matches!(graph[id].op(), Op::Rng(_)), expand)
    }
}

fn expand(w: &mut Writer<'_>, id: InstrId) -> Result<InstrId> {
    let Op::Rng(Rng { distribution }) = w.graph()[id].op().clone() else { return Ok(id) };
    let shape = w.array(id)?.clone().with_layout(None);
    let (a, b) = (w.graph()[id].operand(0), w.graph()[id].operand(1));
    let (word, count) = words_of_rng(distribution, &shape);
    let blocks = count.div_ceil(128 / word.bit_width());
    let counter =
        w.add(RngGetAndUpdateState { delta: blocks as i64 }, Some(Shape::array(ElementType::U64, [2])), &[])?;
    let key = w.literal(Literal::splat(&ArrayShape::new(ElementType::U64, [1]), Scalar::Unsigned(RNG_KEY))?)?;
    let state = w.concatenate(&[key, counter], 0)?;
    let pair = Shape::Tuple(vec![Shape::array(ElementType::U64, [3]), Shape::array(word, [count])]);
    let drawn = w.add(RngBitGenerator { algorithm: RngAlgorithm::Philox }, Some(pair), &[state])?;
    let bits = w.get(drawn, 1)?;
    match distribution {
        RngDistribution::Uniform => {
            let bits = w.reshape(bits, shape.dims())?;
            if shape.element_type().is_float() {
                even_floats(w, bits, a, b, shape.element_type())
            } else {
                even_integers(w, bits, a, b, shape.element_type())
            }
        }
        RngDistribution::Normal => {
            let half = count / 2;
            let (u, v) = (w.slice(bits, 0, 0, half)?, w.slice(bits, 0, half, count)?);
            let normal = normal(w, u, v, shape.element_type())?;
            let normal = w.slice(normal, 0, 0, shape.element_count())?;
            let normal = w.reshape(normal, shape.dims())?;
            moved(w, normal, a, b, shape.element_type())
        }
    }
}

/// The type in which floats are made.
fn made_in(ty: ElementType) -> ElementType {
    if ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
}

/// A scalar in every element of an array like `x`.
fn everywhere(w: &mut Writer<'_>, scalar: InstrId, x: InstrId) -> Result<InstrId> {
    let dims = w.dims(x);
    w.broadcast(scalar, &dims, &[])
}

/// Numbers in `[0, 1)` of the upper bits of words: they become the mantissa of a number in `[1, 2)`.
fn units(w: &mut Writer<'_>, bits: InstrId) -> Result<InstrId> {
    let (float, unused, one) = match w.element_type(bits)? {
        ElementType::U64 => (ElementType::F64, 12, 1f64.to_bits()),
        _ => (ElementType::F32, 9, u64::from(1f32.to_bits())),
    };
    let mantissa = w.binary_with(BinaryOp::ShiftRightLogical, bits, Scalar::Unsigned(unused))?;
    let pattern = w.binary_with(BinaryOp::Or, mantissa, Scalar::Unsigned(one))?;
    let number = w.same_bits(pattern, float)?;
    w.binary_with(BinaryOp::Subtract, number, Scalar::Float(1.0))
}

/// `a + u * (b - a)`; where rounding gives `b` or more, `a`.
fn even_floats(w: &mut Writer<'_>, bits: InstrId, a: InstrId, b: InstrId, ty: ElementType) -> Result<InstrId> {
    let wide = made_in(ty);
    let units = units(w, bits)?;
    let (low, high) = (w.convert(a, wide)?, w.convert(b, wide)?);
    let range = w.binary(BinaryOp::Subtract, high, low)?;
    let (range, low) = (everywhere(w, range, units)?, everywhere(w, low, units)?);
    let scaled = w.binary(BinaryOp::Multiply, units, range)?;
    let x = w.binary(BinaryOp::Add, scaled, low)?;
    let x = w.convert(x, ty)?;
    let (a, b) = (everywhere(w, a, x)?, everywhere(w, b, x)?);
    let too_large = w.compare(CompareDirection::Ge, x, b)?;
    w.select(too_large, a, x)
}

/// `a` plus the remainder by `b - a`, in the width of the words.
fn even_integers(w: &mut Writer<'_>, bits: InstrId, a: InstrId, b: InstrId, ty: ElementType) -> Result<InstrId> {
    let word = w.element_type(bits)?;
    let (a, b) = (w.convert(a, word)?, w.convert(b, word)?);
    let range = w.binary(BinaryOp::Subtract, b, a)?;
    let (range, a) = (everywhere(w, range, bits)?, everywhere(w, a, bits)?);
    let offset = w.binary(BinaryOp::Remainder, bits, range)?;
    let sum = w.binary(BinaryOp::Add, a, offset)?;
    w.convert(sum, ty)
}

/// Pairs of normal numbers by the method of Box and Muller, one after the other: cosines, then sines. Narrow types stay
/// in `f32`.
fn normal(w: &mut Writer<'_>, u: InstrId, v: InstrId, ty: ElementType) -> Result<InstrId> {
    let shape = ArrayShape::new(made_in(ty), w.dims(u));
    let u = units(w, u)?;
    let one = w.splat(&shape, Scalar::Float(1.0))?;
    let u = w.binary(BinaryOp::Subtract, one, u)?;
    let logarithm = w.unary(UnaryOp::Log, u)?;
    let square = w.binary_with(BinaryOp::Multiply, logarithm, Scalar::Float(-2.0))?;
    let radius = w.unary(UnaryOp::Sqrt, square)?;
    let v = units(w, v)?;
    let angle = w.binary_with(BinaryOp::Multiply, v, Scalar::Float(std::f64::consts::TAU))?;
    let (cosine, sine) = (w.unary(UnaryOp::Cosine, angle)?, w.unary(UnaryOp::Sine, angle)?);
    let (x, y) = (w.binary(BinaryOp::Multiply, radius, cosine)?, w.binary(BinaryOp::Multiply, radius, sine)?);
    w.concatenate(&[x, y], 0)
}

/// Normal numbers of another mean and deviation.
fn moved(w: &mut Writer<'_>, x: InstrId, mean: InstrId, deviation: InstrId, ty: ElementType) -> Result<InstrId> {
    let wide = made_in(ty);
    let (mean, deviation) = (w.convert(mean, wide)?, w.convert(deviation, wide)?);
    let (mean, deviation) = (everywhere(w, mean, x)?, everywhere(w, deviation, x)?);
    let scaled = w.binary(BinaryOp::Multiply, x, deviation)?;
    let moved = w.binary(BinaryOp::Add, scaled, mean)?;
    w.convert(moved, ty)
}
