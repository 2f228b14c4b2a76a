//! Stochastic rounding as elementwise operations.

use xla_hlo::ops::{BinaryOp, CompareDirection, UnaryOp};
use xla_hlo::{ElementType, InstrId, Module, Op, Result, Scalar};

use super::Writer;
use crate::{Pass, PassContext};

/// Puts `stochastic-convert` in terms of the magnitude's whole part and fraction, bit for bit.
///
/// All steps are exact: fractions have as many bits as the mantissa at most, and scaling by a power of two loses none in
/// `f32` (for narrower types) or `f64`. The last conversion saturates and makes 0 of NaN, as stochastic rounding does.
pub struct ExpandStochasticConverts;

impl Pass for ExpandStochasticConverts {
    fn name(&self) -> &'static str {
        "expand-stochastic-converts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        super::expand_each(module, |graph, id| matches!(graph[id].op(), Op::StochasticConvert(_)), expand)
    }
}

fn expand(w: &mut Writer<'_>, id: InstrId) -> Result<InstrId> {
    let (x, random) = (w.graph()[id].operand(0), w.graph()[id].operand(1));
    let to = w.element_type(id)?;
    let bits = w.element_type(random)?.bit_width();
    let (float, word) = if w.element_type(x)? == ElementType::F64 {
        (ElementType::F64, ElementType::U64)
    } else {
        (ElementType::F32, ElementType::U32)
    };
    let (x, random) = (w.convert(x, float)?, w.convert(random, word)?);
    let magnitude = w.unary(UnaryOp::Abs, x)?;
    let whole = w.unary(UnaryOp::Floor, magnitude)?;
    let fraction = w.binary(BinaryOp::Subtract, magnitude, whole)?;
    let chances = w.binary_with(BinaryOp::Multiply, fraction, Scalar::Float((bits as f64).exp2()))?;
    let chances = w.convert(chances, word)?;
    let goes_up = w.compare(CompareDirection::Lt, random, chances)?;
    let next = w.binary_with(BinaryOp::Add, whole, Scalar::Float(1.0))?;
    let rounded = w.select(goes_up, next, whole)?;
    let zero = w.array(x)?.clone();
    let zero = w.splat(&zero, Scalar::Float(0.0))?;
    let is_negative = w.compare(CompareDirection::Lt, x, zero)?;
    let negated = w.unary(UnaryOp::Negate, rounded)?;
    let signed = w.select(is_negative, negated, rounded)?;
    w.convert(signed, to)
}
