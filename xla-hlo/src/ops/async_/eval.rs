//! Evaluator of asynchronous operations: the start operation does all the work.

use super::super::checks;
use super::{Async, AsyncStart};
use crate::eval::Evaluator;
use crate::{ElementType, Error, Literal, Result, Scalar, Shape};

pub(super) fn evaluate(op: &Async, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    match op {
        Async::Start(start) => evaluate_start(start, ev, operands, shape),
        Async::Update => first(operands),
        Async::Done => element(operands, 1),
        Async::CopyStart { .. } => {
            let operand = first(operands)?;
            let state = Literal::scalar(ElementType::U32, Scalar::Unsigned(0));
            Ok(Literal::tuple(vec![operand.clone(), operand, state]))
        }
        Async::CopyDone => element(operands, 0),
    }
}

fn evaluate_start(
    start: &AsyncStart,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let result = ev.call(start.computation, operands.clone())?;
    let mut elements = vec![Literal::tuple(operands), result];
    // The evaluator has no use for a backend's state of the operation: its elements are zeros.
    let state = shape.as_tuple().and_then(|elements| elements.get(2..)).unwrap_or_default();
    for shape in state {
        elements.push(Literal::zeros_of(shape)?);
    }
    Ok(Literal::tuple(elements))
}

fn first(operands: Vec<Literal>) -> Result<Literal> {
    operands.into_iter().next().ok_or_else(checks::missing_operand)
}

fn element(operands: Vec<Literal>, i: usize) -> Result<Literal> {
    let element = first(operands)?.into_elements().into_iter().nth(i);
    element.ok_or_else(|| Error::internal(format!("the operand has no element {i}")))
}
