//! Shape rules of the window family.

use super::*;

pub(super) fn reduce_window(op: &ReduceWindow, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("reduce_window"))
}

pub(super) fn select_and_scatter(op: &SelectAndScatter, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("select_and_scatter"))
}
