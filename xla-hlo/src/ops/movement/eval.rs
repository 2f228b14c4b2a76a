//! Meaning of the movement family.

use super::*;

pub(super) fn broadcast(
    op: &Broadcast,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("broadcast"))
}

pub(super) fn reshape(op: &Reshape, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("reshape"))
}

pub(super) fn transpose(
    op: &Transpose,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("transpose"))
}

pub(super) fn slice(op: &Slice, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("slice"))
}

pub(super) fn pad(op: &Pad, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("pad"))
}

pub(super) fn concatenate(
    op: &Concatenate,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("concatenate"))
}

pub(super) fn reverse(op: &Reverse, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("reverse"))
}

pub(super) fn iota(op: &Iota, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("iota"))
}

pub(super) fn dynamic_slice(
    op: &DynamicSlice,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("dynamic_slice"))
}

pub(super) fn dynamic_update_slice(
    op: &DynamicUpdateSlice,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("dynamic_update_slice"))
}

pub(super) fn copy(op: &Copy, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("copy"))
}

pub(super) fn bitcast(op: &Bitcast, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("bitcast"))
}
