//! Shape rules of the elementwise family.

use super::*;

pub(super) fn unary(op: &Unary, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("unary"))
}

pub(super) fn binary(op: &Binary, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("binary"))
}

pub(super) fn compare(op: &Compare, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("compare"))
}

pub(super) fn select(op: &Select, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("select"))
}

pub(super) fn clamp(op: &Clamp, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("clamp"))
}

pub(super) fn convert(op: &Convert, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("convert"))
}

pub(super) fn bitcast_convert(op: &BitcastConvert, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("bitcast_convert"))
}

pub(super) fn reduce_precision(op: &ReducePrecision, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("reduce_precision"))
}
