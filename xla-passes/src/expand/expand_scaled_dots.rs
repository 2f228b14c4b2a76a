//! Expands scaled dots into dots of the scaled arrays.

use xla_hlo::ops::{BinaryOp, Dot, ScaledDot};
use xla_hlo::{ElementType, InstrId, Module, Op, Result, Shape};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands `scaled-dot` into a dot of arrays that are multiplied by their scales.
///
/// Scaled elements are computed in `f32`, or in `f64` if an operand or the result is `f64`. This is exact for the types
/// that scaled dots are designed for, except for products out of range.
pub struct ExpandScaledDots;

impl Pass for ExpandScaledDots {
    fn name(&self) -> &'static str {
        "expand-scaled-dots"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::ScaledDot(_)), expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::ScaledDot(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let operands = at.operands(id);
    let result = at.array(id)?.clone();
    let is_wide = |id: InstrId| at.shape(id).element_type() == Some(ElementType::F64);
    let wide = is_wide(id) || operands.iter().copied().any(is_wide);
    let ty = if wide { ElementType::F64 } else { ElementType::F32 };
    let [lhs, rhs] = [0, 1].map(|side| scaled(at, operands[side], operands[side + 2], ty));
    // The algorithm is dropped, since it refers to the types of the original operands.
    let dot = Dot { dims: op.dims, precision: op.precision, algorithm: None };
    let shape = Shape::array(ty, result.dims());
    let product = at.add_as(dot, shape, [lhs?, rhs?])?;
    at.convert(product, result.element_type())
}

/// Converts an array to the type and multiplies it by its scales.
fn scaled(at: &mut Inserter<'_>, array: InstrId, scale: InstrId, ty: ElementType) -> Result<InstrId> {
    let x = at.convert(array, ty)?;
    if ScaledDot::is_no_scale(at.array(scale)?) {
        return Ok(x);
    }
    let scale = at.convert(scale, ty)?;
    let (dims, blocks) = (at.dims(x), at.dims(scale));
    // Each dimension is split into blocks and positions in a block, which are then merged.
    let split: Vec<usize> = dims.iter().zip(&blocks).flat_map(|(&d, &b)| [b, d.checked_div(b).unwrap_or(1)]).collect();
    let places: Vec<usize> = (0..blocks.len()).map(|d| 2 * d).collect();
    let spread = at.broadcast(scale, &split, &places)?;
    let spread = at.reshape(spread, &dims)?;
    at.binary(BinaryOp::Multiply, x, spread)
}
