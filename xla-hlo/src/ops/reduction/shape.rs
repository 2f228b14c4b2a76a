//! Shape rules of the reduction family.

use super::*;

pub(super) fn reduce(op: &Reduce, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("reduce"))
}
