//! Expands stochastic rounding into elementwise operations.

use xla_hlo::ops::{BinaryOp, CompareDirection, UnaryOp};
use xla_hlo::{ElementType, InstrId, Module, Op, Result, Scalar};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands `stochastic-convert` into arithmetic on the whole part and the fraction of the magnitude. The result is
/// bit-exact.
///
/// All steps are exact: fractions have at most the bits of the mantissa, and scaling by a power of two is exact in
/// `f32` (for narrower types) or `f64`. The last conversion saturates and converts NaN to 0, as stochastic rounding
/// does.
pub struct ExpandStochasticConverts;

impl Pass for ExpandStochasticConverts {
    fn name(&self) -> &'static str {
        "expand-stochastic-converts"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::StochasticConvert(_)), expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let (x, random) = (at.graph()[id].operand(0), at.graph()[id].operand(1));
    let to = at.element_type(id)?;
    let bits = at.element_type(random)?.bit_width();
    let (float, word) = if at.element_type(x)? == ElementType::F64 {
        (ElementType::F64, ElementType::U64)
    } else {
        (ElementType::F32, ElementType::U32)
    };
    let (x, random) = (at.convert(x, float)?, at.convert(random, word)?);
    let magnitude = at.unary(UnaryOp::Abs, x)?;
    let whole = at.unary(UnaryOp::Floor, magnitude)?;
    let fraction = at.binary(BinaryOp::Subtract, magnitude, whole)?;
    let chances = at.binary_with(BinaryOp::Multiply, fraction, Scalar::Float((bits as f64).exp2()))?;
    let chances = at.convert(chances, word)?;
    let goes_up = at.compare(CompareDirection::Lt, random, chances)?;
    let next = at.binary_with(BinaryOp::Add, whole, Scalar::Float(1.0))?;
    let rounded = at.select(goes_up, next, whole)?;
    let zero = at.array(x)?.clone();
    let zero = at.splat(&zero, Scalar::Float(0.0))?;
    let is_negative = at.compare(CompareDirection::Lt, x, zero)?;
    let negated = at.unary(UnaryOp::Negate, rounded)?;
    let signed = at.select(is_negative, negated, rounded)?;
    at.convert(signed, to)
}
