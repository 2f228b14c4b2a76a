//! Meaning of the elementwise family.

use super::*;

pub(super) fn unary(op: &Unary, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("unary"))
}

pub(super) fn binary(op: &Binary, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("binary"))
}

pub(super) fn compare(op: &Compare, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("compare"))
}

pub(super) fn select(op: &Select, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("select"))
}

pub(super) fn clamp(op: &Clamp, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("clamp"))
}

pub(super) fn convert(op: &Convert, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("convert"))
}

pub(super) fn bitcast_convert(
    op: &BitcastConvert,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("bitcast_convert"))
}

pub(super) fn reduce_precision(
    op: &ReducePrecision,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("reduce_precision"))
}
