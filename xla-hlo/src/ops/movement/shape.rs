//! Shape rules of the movement family.

use super::*;

pub(super) fn broadcast(op: &Broadcast, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("broadcast"))
}

pub(super) fn reshape(op: &Reshape, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("reshape"))
}

pub(super) fn transpose(op: &Transpose, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("transpose"))
}

pub(super) fn slice(op: &Slice, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("slice"))
}

pub(super) fn pad(op: &Pad, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("pad"))
}

pub(super) fn concatenate(op: &Concatenate, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("concatenate"))
}

pub(super) fn reverse(op: &Reverse, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("reverse"))
}

pub(super) fn iota(op: &Iota, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("iota"))
}

pub(super) fn dynamic_slice(op: &DynamicSlice, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("dynamic_slice"))
}

pub(super) fn dynamic_update_slice(op: &DynamicUpdateSlice, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("dynamic_update_slice"))
}

pub(super) fn copy(op: &Copy, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("copy"))
}

pub(super) fn bitcast(op: &Bitcast, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("bitcast"))
}
