//! Expands random numbers into random bits and arithmetic.

use xla_hlo::ops::random::{RNG_KEY, words_of_rng};
use xla_hlo::ops::{
    BinaryOp, CompareDirection, Rng, RngAlgorithm, RngBitGenerator, RngDistribution, RngGetAndUpdateState, UnaryOp,
};
use xla_hlo::{ArrayShape, ElementType, InstrId, Literal, Module, Op, Result, Scalar, Shape};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands `rng` into `rng-get-and-update-state`, `rng-bit-generator` and elementwise operations.
///
/// Generates numbers by the evaluator's algorithm: uniform numbers are bit-identical, normal ones up to the accuracy of
/// logarithm, sine and cosine.
pub struct ExpandRng;

impl Pass for ExpandRng {
    fn name(&self) -> &'static str {
        "expand-rng"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::Rng(_)), expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::Rng(Rng { distribution }) = at.graph()[id].op().clone() else { return Ok(id) };
    let shape = at.array(id)?.clone().with_layout(None);
    let (a, b) = (at.graph()[id].operand(0), at.graph()[id].operand(1));
    let (word, count) = words_of_rng(distribution, &shape);
    let blocks = count.div_ceil(128 / word.bit_width());
    let counter = at.add_as(RngGetAndUpdateState { delta: blocks as i64 }, Shape::array(ElementType::U64, [2]), [])?;
    let key = at.literal(Literal::splat(&ArrayShape::new(ElementType::U64, [1]), Scalar::Unsigned(RNG_KEY))?)?;
    let state = at.concatenate(&[key, counter], 0)?;
    let pair = Shape::Tuple(vec![Shape::array(ElementType::U64, [3]), Shape::array(word, [count])]);
    let drawn = at.add_as(RngBitGenerator { algorithm: RngAlgorithm::Philox }, pair, [state])?;
    let bits = at.get(drawn, 1)?;
    match distribution {
        RngDistribution::Uniform => {
            let bits = at.reshape(bits, shape.dims())?;
            if shape.element_type().is_float() {
                even_floats(at, bits, a, b, shape.element_type())
            } else {
                even_integers(at, bits, a, b, shape.element_type())
            }
        }
        RngDistribution::Normal => {
            let half = count / 2;
            let (u, v) = (at.slice(bits, 0, 0, half)?, at.slice(bits, 0, half, count)?);
            let normal = normal(at, u, v, shape.element_type())?;
            let normal = at.slice(normal, 0, 0, shape.element_count())?;
            let normal = at.reshape(normal, shape.dims())?;
            moved(at, normal, a, b, shape.element_type())
        }
    }
}

/// Returns the type in which floats are generated.
fn made_in(ty: ElementType) -> ElementType {
    if ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
}

/// Broadcasts a scalar to the shape of `x`.
fn everywhere(at: &mut Inserter<'_>, scalar: InstrId, x: InstrId) -> Result<InstrId> {
    let dims = at.dims(x);
    at.broadcast(scalar, &dims, &[])
}

/// Converts the upper bits of words to numbers in `[0, 1)`: they become the mantissa of a number in `[1, 2)`.
fn units(at: &mut Inserter<'_>, bits: InstrId) -> Result<InstrId> {
    let (float, unused, one) = match at.element_type(bits)? {
        ElementType::U64 => (ElementType::F64, 12, 1f64.to_bits()),
        _ => (ElementType::F32, 9, u64::from(1f32.to_bits())),
    };
    let mantissa = at.binary_with(BinaryOp::ShiftRightLogical, bits, Scalar::Unsigned(unused))?;
    let pattern = at.binary_with(BinaryOp::Or, mantissa, Scalar::Unsigned(one))?;
    let number = at.same_bits(pattern, float)?;
    at.binary_with(BinaryOp::Subtract, number, Scalar::Float(1.0))
}

/// Emits `a + u * (b - a)`, or `a` if that rounds to `b` or more.
fn even_floats(at: &mut Inserter<'_>, bits: InstrId, a: InstrId, b: InstrId, ty: ElementType) -> Result<InstrId> {
    let wide = made_in(ty);
    let units = units(at, bits)?;
    let (low, high) = (at.convert(a, wide)?, at.convert(b, wide)?);
    let range = at.binary(BinaryOp::Subtract, high, low)?;
    let (range, low) = (everywhere(at, range, units)?, everywhere(at, low, units)?);
    let scaled = at.binary(BinaryOp::Multiply, units, range)?;
    let x = at.binary(BinaryOp::Add, scaled, low)?;
    let x = at.convert(x, ty)?;
    let (a, b) = (everywhere(at, a, x)?, everywhere(at, b, x)?);
    let too_large = at.compare(CompareDirection::Ge, x, b)?;
    at.select(too_large, a, x)
}

/// Emits `a` plus the remainder of the division by `b - a`, in the width of the words.
fn even_integers(at: &mut Inserter<'_>, bits: InstrId, a: InstrId, b: InstrId, ty: ElementType) -> Result<InstrId> {
    let word = at.element_type(bits)?;
    let (a, b) = (at.convert(a, word)?, at.convert(b, word)?);
    let range = at.binary(BinaryOp::Subtract, b, a)?;
    let (range, a) = (everywhere(at, range, bits)?, everywhere(at, a, bits)?);
    let offset = at.binary(BinaryOp::Remainder, bits, range)?;
    let sum = at.binary(BinaryOp::Add, a, offset)?;
    at.convert(sum, ty)
}

/// Emits pairs of normal numbers by the Box-Muller method, first all cosines, then all sines. Narrow types stay in
/// `f32`.
fn normal(at: &mut Inserter<'_>, u: InstrId, v: InstrId, ty: ElementType) -> Result<InstrId> {
    let shape = ArrayShape::new(made_in(ty), at.dims(u));
    let u = units(at, u)?;
    let one = at.splat(&shape, Scalar::Float(1.0))?;
    let u = at.binary(BinaryOp::Subtract, one, u)?;
    let logarithm = at.unary(UnaryOp::Log, u)?;
    let square = at.binary_with(BinaryOp::Multiply, logarithm, Scalar::Float(-2.0))?;
    let radius = at.unary(UnaryOp::Sqrt, square)?;
    let v = units(at, v)?;
    let angle = at.binary_with(BinaryOp::Multiply, v, Scalar::Float(std::f64::consts::TAU))?;
    let (cosine, sine) = (at.unary(UnaryOp::Cosine, angle)?, at.unary(UnaryOp::Sine, angle)?);
    let (x, y) = (at.binary(BinaryOp::Multiply, radius, cosine)?, at.binary(BinaryOp::Multiply, radius, sine)?);
    at.concatenate(&[x, y], 0)
}

/// Scales normal numbers to another mean and deviation.
fn moved(at: &mut Inserter<'_>, x: InstrId, mean: InstrId, deviation: InstrId, ty: ElementType) -> Result<InstrId> {
    let wide = made_in(ty);
    let (mean, deviation) = (at.convert(mean, wide)?, at.convert(deviation, wide)?);
    let (mean, deviation) = (everywhere(at, mean, x)?, everywhere(at, deviation, x)?);
    let scaled = at.binary(BinaryOp::Multiply, x, deviation)?;
    let moved = at.binary(BinaryOp::Add, scaled, mean)?;
    at.convert(moved, ty)
}
