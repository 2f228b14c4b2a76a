//! Shape rules of the indexing family.

use super::*;

pub(super) fn gather(op: &Gather, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("gather"))
}

pub(super) fn scatter(op: &Scatter, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("scatter"))
}
