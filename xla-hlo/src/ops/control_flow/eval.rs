//! Meaning of the control flow family.

use super::*;

pub(super) fn while_loop(op: &While, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("while_loop"))
}

pub(super) fn conditional(
    op: &Conditional,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("conditional"))
}

pub(super) fn call(op: &Call, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("call"))
}

pub(super) fn map(op: &Map, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("map"))
}

pub(super) fn fusion(op: &Fusion, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("fusion"))
}
