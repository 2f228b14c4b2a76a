//! Meaning of the structure family.

use super::*;

pub(super) fn parameter(
    op: &Parameter,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("parameter"))
}

pub(super) fn constant(
    op: &Constant,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("constant"))
}

pub(super) fn tuple(op: &Tuple, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("tuple"))
}

pub(super) fn get_tuple_element(
    op: &GetTupleElement,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("get_tuple_element"))
}

pub(super) fn opt_barrier(
    op: &OptBarrier,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("opt_barrier"))
}
