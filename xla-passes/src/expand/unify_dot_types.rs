//! Changes the result type of dots to one that holds their sums, and converts the sums.

use xla_hlo::ops::{Dot, Unary, UnaryOp};
use xla_hlo::{Computation, ElementKind, ElementType, InstrId, Instruction, Module, Op, Result};

use crate::rewrite::graph;
use crate::rewrite::widen::converted;
use crate::{Pass, PassContext};

/// Changes the element type of a dot to [`Dot::sum_type`], in which its products are accumulated, if the result type is
/// not suitable: a dot of floats with an integer result becomes a dot of floats and a conversion.
///
/// Targets convert operands to the result type (f32 for narrower floats) before they multiply. This is exact only if
/// that type has the kind of the operands or a higher one, and at least their width.
pub struct UnifyDotTypes;

impl Pass for UnifyDotTypes {
    fn name(&self) -> &'static str {
        "unify-dot-types"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<_> = module.ids().collect();
        for id in ids {
            for dot in module[id].post_order() {
                if let Some(sum) = other_sum_type(&module[id], dot)
                    && graph::is_free(&module[id][dot])
                    && cx.allow_rewrite(self.name())
                {
                    unify(module.computation_mut(id), dot, sum)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the type that a dot's sums require; `None` if its result type is suitable.
fn other_sum_type(computation: &Computation, id: InstrId) -> Option<ElementType> {
    let instruction = &computation[id];
    let Op::Dot(_) = instruction.op() else { return None };
    let operand = |i: usize| computation[instruction.operand(i)].shape().element_type();
    let result = instruction.shape().element_type()?;
    let sum = Dot::sum_type(operand(0)?, operand(1)?, result);
    let is_held = match (sum.kind(), result.kind()) {
        (ElementKind::Float, ElementKind::Float) => sum.bit_width() <= result.bit_width().max(32),
        (ElementKind::Complex, ElementKind::Complex) => sum.bit_width() <= result.bit_width(),
        _ => sum == result,
    };
    (!is_held).then_some(sum)
}

fn unify(computation: &mut Computation, old: InstrId, sum: ElementType) -> Result<()> {
    let dot = &computation[old];
    let result = dot.shape().expect_array()?.element_type();
    let shape = dot.shape().expect_array()?.clone().with_element_type(sum);
    let new = Instruction::new(dot.op().clone(), shape.clone().into(), dot.operands().to_vec())
        .with_name(dot.name())
        .with_annotations(dot.annotations().cloned().map(Box::new));
    let mut value = computation.add(new);
    if sum.is_complex() && !result.is_complex() {
        let part = shape.with_element_type(sum.real_part());
        value = computation.add(Instruction::new(Unary::from(UnaryOp::Real).into(), part.into(), [value]));
    }
    value = converted(computation, value, result)?;
    computation.replace_all_uses(old, value);
    computation.remove(old)
}
