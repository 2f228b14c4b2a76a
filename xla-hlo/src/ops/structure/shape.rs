//! Shape rules of the structure family.

use super::*;

pub(super) fn parameter(_: &Parameter, cx: &ShapeContext<'_>) -> Result<Shape> {
    let shape = cx.written()?;
    check_addressable(shape)?;
    Ok(shape.without_layout())
}

pub(super) fn constant(op: &Constant, cx: &ShapeContext<'_>) -> Result<Shape> {
    let shape = op.literal.shape();
    match cx.written() {
        Ok(written) if !written.compatible(shape) => Err(Error::invalid_argument(format!(
            "the shape of a constant must be that of its literal: {} and {shape}",
            written.without_layout()
        ))),
        _ => Ok(shape.clone()),
    }
}

pub(super) fn tuple(_: &Tuple, cx: &ShapeContext<'_>) -> Result<Shape> {
    Ok(Shape::Tuple(cx.operands().iter().map(|shape| shape.without_layout()).collect()))
}

pub(super) fn get_tuple_element(op: &GetTupleElement, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.operand(0)?;
    let elements = operand.as_tuple().ok_or_else(|| {
        Error::invalid_argument(format!(
            "the operand of get-tuple-element must be a tuple, it is {}",
            operand.without_layout()
        ))
    })?;
    let element = elements.get(op.index).ok_or_else(|| {
        Error::invalid_argument(format!(
            "the index of get-tuple-element must be below {}, the size of the tuple, it is {}",
            elements.len(),
            op.index
        ))
    })?;
    Ok(element.without_layout())
}

pub(super) fn opt_barrier(_: &OptBarrier, cx: &ShapeContext<'_>) -> Result<Shape> {
    Ok(cx.operand(0)?.without_layout())
}

/// Checks that the sizes of a shape do not overflow. Values enter a computation at parameters, so the check is done
/// there.
fn check_addressable(shape: &Shape) -> Result<()> {
    for (_, leaf) in shape.leaves() {
        match leaf {
            Shape::Array(array) => {
                array.checked_element_count()?;
            }
            Shape::Buffer(array) => {
                array.checked_element_count()?;
            }
            Shape::Tuple(_) | Shape::Token | Shape::Opaque => {}
        }
    }
    Ok(())
}
