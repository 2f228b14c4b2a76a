//! Shape rules of the window family.

use super::*;
use crate::ops::checks::{self, ensure};
use crate::ops::combiner::{Accumulators, ReduceOperands};
use crate::{ArrayShape, ElementType};

/// Returns the shape of a window reduction, with the window's positions and the combiner's element types.
pub(super) fn reduce_window(op: &ReduceWindow, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (dims, elements, inits) = ReduceOperands::check(cx)?;
    let accumulators = Accumulators::check(cx, op.computation, &elements, &inits)?;
    accumulators.shape(&op.window.output_dims(dims)?)
}

/// Checks that the source has one element for each window of the operand; returns the operand's shape.
pub(super) fn select_and_scatter(op: &SelectAndScatter, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, source, init) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    let ty = operand.element_type();
    let windows = op.window.output_dims(operand.dims())?;
    ensure!(
        source.dims() == windows,
        "the source {source} must have one element for each window of the operand {operand}: dimensions {windows:?}"
    );
    checks::scalar("the initial value", init)?;
    check_select(cx, op, ty)?;
    let accumulators = Accumulators::check(cx, op.scatter, &[source.element_type()], &[init.element_type()])?;
    ensure!(
        accumulators.types() == [ty] && cx.result_shape(op.scatter)?.as_array().is_some(),
        "the computation scatter must return {ty}[], the operand's element type"
    );
    Ok(ArrayShape::new(ty, operand.dims()).into())
}

/// Checks that `select` compares two elements of the operand's type.
fn check_select(cx: &ShapeContext<'_>, op: &SelectAndScatter, ty: ElementType) -> Result<()> {
    let element = Shape::scalar(ty);
    cx.expect_parameters(op.select, &[&element, &element])?;
    let result = cx.result_shape(op.select)?;
    ensure!(
        result.compatible(&Shape::scalar(ElementType::Pred)),
        "the computation select must return pred[], it returns {result}"
    );
    Ok(())
}
