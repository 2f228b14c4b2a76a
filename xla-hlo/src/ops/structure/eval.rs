//! Evaluator of the structure family.

use super::*;

pub(super) fn parameter(op: &Parameter, _: &mut Evaluator<'_>, _: Vec<Literal>, _: &Shape) -> Result<Literal> {
    Err(Error::internal(format!("parameter {} was not bound to an argument", op.number)))
}

pub(super) fn constant(op: &Constant, _: &mut Evaluator<'_>, _: Vec<Literal>, _: &Shape) -> Result<Literal> {
    Ok(op.literal.clone())
}

pub(super) fn tuple(_: &Tuple, _: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
    Ok(Literal::tuple(operands))
}

/// Takes the element out of the whole tuple. Serves callers that evaluate one instruction; the evaluator's driver
/// handles `get-tuple-element` itself, without holding the whole tuple.
pub(super) fn get_tuple_element(
    op: &GetTupleElement,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    _: &Shape,
) -> Result<Literal> {
    let tuple = operands.into_iter().next();
    let element = tuple.and_then(|t| t.into_elements().into_iter().nth(op.index));
    element.ok_or_else(|| Error::internal(format!("the operand has no element {}", op.index)))
}

pub(super) fn opt_barrier(_: &OptBarrier, _: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
    operands.into_iter().next().ok_or_else(|| Error::internal("the operand is missing"))
}
