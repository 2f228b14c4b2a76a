//! Shape rules of the structure family.

use super::*;

pub(super) fn parameter(op: &Parameter, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("parameter"))
}

pub(super) fn constant(op: &Constant, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("constant"))
}

pub(super) fn tuple(op: &Tuple, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("tuple"))
}

pub(super) fn get_tuple_element(op: &GetTupleElement, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("get_tuple_element"))
}

pub(super) fn opt_barrier(op: &OptBarrier, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("opt_barrier"))
}
