//! Shape rules of the dot family.

use super::*;

pub(super) fn dot(op: &Dot, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("dot"))
}
