//! Shape rules of the control flow family: arguments must match parameters, and results the instruction.

use super::*;
use crate::{ArrayShape, ElementType};

pub(super) fn while_loop(op: &While, cx: &ShapeContext<'_>) -> Result<Shape> {
    let state = cx.operand(0)?;
    cx.expect_parameters(op.condition, &[state])?;
    cx.expect_parameters(op.body, &[state])?;
    expect_result(cx, op.condition, &Shape::scalar(ElementType::Pred), "the condition of while")?;
    expect_result(cx, op.body, state, "the body of while")?;
    Ok(state.without_layout())
}

pub(super) fn conditional(op: &Conditional, cx: &ShapeContext<'_>) -> Result<Shape> {
    let selector = cx.array(0)?;
    let wanted = if op.by_predicate { ElementType::Pred } else { ElementType::S32 };
    if !selector.is_scalar() || selector.element_type() != wanted {
        return Err(Error::invalid_argument(format!(
            "operand 0 of a conditional with {} must be {wanted}[], it is {}",
            if op.by_predicate { "true_computation and false_computation" } else { "branch_computations" },
            selector.clone().with_layout(None)
        )));
    }
    let Some(&first) = op.branches.first() else {
        return Err(Error::invalid_argument("a conditional must have at least one branch"));
    };
    if op.by_predicate && op.branches.len() != 2 {
        return Err(Error::invalid_argument(format!(
            "a conditional on pred must have 2 branches, it has {}",
            op.branches.len()
        )));
    }
    if cx.operands().len() != op.branches.len() + 1 {
        return Err(Error::invalid_argument(format!(
            "a conditional must have the selector and one operand for each of its {} branches, it has {} operands",
            op.branches.len(),
            cx.operands().len()
        )));
    }
    let result = cx.result_shape(first)?;
    for (i, &branch) in op.branches.iter().enumerate() {
        cx.expect_parameters(branch, &[cx.operand(i + 1)?])?;
        expect_result(cx, branch, result, &format!("branch {i} of conditional"))?;
    }
    Ok(result.without_layout())
}

pub(super) fn call(op: &Call, cx: &ShapeContext<'_>) -> Result<Shape> {
    cx.expect_parameters(op.computation, cx.operands())?;
    Ok(cx.result_shape(op.computation)?.without_layout())
}

pub(super) fn map(op: &Map, cx: &ShapeContext<'_>) -> Result<Shape> {
    let first = cx.array(0)?;
    let mut scalars = Vec::with_capacity(cx.operands().len());
    for i in 0..cx.operands().len() {
        let operand = cx.array(i)?;
        if !operand.same_dims(first) {
            return Err(Error::invalid_argument(format!(
                "operands of map must have equal dimensions: {} and {}",
                first.clone().with_layout(None),
                operand.clone().with_layout(None)
            )));
        }
        scalars.push(Shape::scalar(operand.element_type()));
    }
    // Text may omit the dimensions, which means all of them.
    if !op.dimensions.is_empty() && !op.dimensions.iter().copied().eq(0..first.rank()) {
        return Err(Error::invalid_argument(format!(
            "dimensions of map must be all {} dimensions in order, they are {:?}",
            first.rank(),
            op.dimensions
        )));
    }
    cx.expect_parameters(op.computation, &scalars.iter().collect::<Vec<_>>())?;
    match cx.result_shape(op.computation)? {
        Shape::Array(result) if result.is_scalar() => Ok(ArrayShape::new(result.element_type(), first.dims()).into()),
        other => Err(Error::invalid_argument(format!(
            "the computation of map must return a scalar, {} returns {}",
            cx.computation(op.computation)?.name(),
            other.without_layout()
        ))),
    }
}

pub(super) fn fusion(op: &Fusion, cx: &ShapeContext<'_>) -> Result<Shape> {
    cx.expect_parameters(op.computation, cx.operands())?;
    let result = cx.result_shape(op.computation)?;
    op.aliases.iter().try_for_each(|alias| alias.check("fusion", cx, result))?;
    Ok(result.without_layout())
}

fn expect_result(cx: &ShapeContext<'_>, computation: CompId, expected: &Shape, what: &str) -> Result<()> {
    let found = cx.result_shape(computation)?;
    if found.compatible(expected) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{what} ({}) must return {}, it returns {}",
        cx.computation(computation)?.name(),
        expected.without_layout(),
        found.without_layout()
    )))
}
