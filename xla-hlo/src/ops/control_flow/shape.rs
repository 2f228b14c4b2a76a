//! Shape rules of the control flow family.

use super::*;

pub(super) fn while_loop(op: &While, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("while_loop"))
}

pub(super) fn conditional(op: &Conditional, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("conditional"))
}

pub(super) fn call(op: &Call, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("call"))
}

pub(super) fn map(op: &Map, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("map"))
}

pub(super) fn fusion(op: &Fusion, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("fusion"))
}
