//! Shape rules of asynchronous operations.

use super::super::checks::ensure;
use super::Async;
use crate::ops::ShapeContext;
use crate::{CompId, ElementType, Error, Result, Shape};

pub(super) fn infer(op: &Async, cx: &ShapeContext<'_>) -> Result<Shape> {
    match op {
        Async::Start(start) => start_result(start.computation, cx),
        Async::Update => {
            operand_result(cx)?;
            Ok(cx.operand(0)?.without_layout())
        }
        Async::Done => Ok(operand_result(cx)?.without_layout()),
        Async::CopyStart { .. } => {
            let operand = cx.operand(0)?.without_layout();
            Ok(Shape::Tuple(vec![operand.clone(), operand, Shape::scalar(ElementType::U32)]))
        }
        Async::CopyDone => {
            let operand = cx.operand(0)?;
            match operand.as_tuple() {
                Some([copy, original, _]) if copy.compatible(original) => Ok(copy.without_layout()),
                _ => Err(Error::invalid_argument(format!(
                    "operand 0 of copy-done must be (copy, original, u32[]), it is {operand}"
                ))),
            }
        }
    }
}

fn start_result(computation: CompId, cx: &ShapeContext<'_>) -> Result<Shape> {
    cx.expect_parameters(computation, cx.operands())?;
    let written = cx.written()?;
    let Some([operands, result, ..]) = written.as_tuple() else {
        return Err(Error::invalid_argument(format!(
            "the result of async-start must be ((operands), result, state...), it is {written}"
        )));
    };
    let expected = Shape::Tuple(cx.operands().iter().map(|shape| (*shape).clone()).collect());
    ensure!(
        operands.compatible(&expected),
        "element 0 of async-start must be the operands {expected}, it is {operands}"
    );
    let expected = cx.result_shape(computation)?;
    ensure!(
        result.compatible(expected),
        "element 1 of async-start must be {expected}, which the computation returns, it is {result}"
    );
    Ok(written.without_layout())
}

/// Returns the result shape of the computation that operand 0 started.
fn operand_result<'a>(cx: &ShapeContext<'a>) -> Result<&'a Shape> {
    let operand = cx.operand(0)?;
    match operand.as_tuple() {
        Some([Shape::Tuple(_), result, ..]) => Ok(result),
        _ => Err(Error::invalid_argument(format!(
            "operand 0 must be the result of a start operation, ((operands), result, state...), it is {operand}"
        ))),
    }
}
