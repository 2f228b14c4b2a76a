//! Shape rules of the elementwise family.
//!
//! The rules are as strict as XLA's: operands have equal dimensions and element types (no implicit broadcast, no mixed
//! precision), and an operation accepts only the element types that it is defined for.

use super::function::{BinaryFunction, UnaryFunction};
use super::*;
use crate::{ArrayShape, Dynamism};

pub(super) fn unary(op: &Unary, cx: &ShapeContext<'_>) -> Result<Shape> {
    let x = cx.array(0)?;
    let ty = x.element_type();
    let function = UnaryFunction::of(op.op, ty)
        .ok_or_else(|| undefined(op.opcode(), ty, |ty| UnaryFunction::of(op.op, ty).is_some()))?;
    Ok(plain(x, function.result_type(ty)))
}

pub(super) fn binary(op: &Binary, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (a, b) = equal_operands(op.opcode(), cx)?;
    let ty = a.element_type();
    let function = BinaryFunction::of(op.op, ty)
        .ok_or_else(|| undefined(op.opcode(), ty, |ty| BinaryFunction::of(op.op, ty).is_some()))?;
    Ok(merged(a, b, function.result_type(ty)))
}

pub(super) fn compare(op: &Compare, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (a, b) = equal_operands(Opcode::Compare, cx)?;
    let ty = a.element_type();
    let orders: &[CompareType] = match ty.kind() {
        ElementKind::Float => &[CompareType::Float, CompareType::TotalOrder],
        ElementKind::Complex => &[CompareType::Float],
        ElementKind::Signed => &[CompareType::Signed],
        ElementKind::Unsigned | ElementKind::Pred => &[CompareType::Unsigned],
    };
    let order = op.order_for(ty);
    if !orders.contains(&order) {
        return Err(Error::invalid_argument(format!("compare of {ty} must have type {orders:?}, not {order:?}")));
    }
    let is_equality = matches!(op.direction, CompareDirection::Eq | CompareDirection::Ne);
    if ty.is_complex() && !is_equality {
        return Err(Error::invalid_argument(format!(
            "compare of {ty} must have direction EQ or NE: the type has no order"
        )));
    }
    Ok(merged(a, b, ElementType::Pred))
}

pub(super) fn select(_: &Select, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (pred, on_true, on_false) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    if pred.element_type() != ElementType::Pred {
        return Err(Error::invalid_argument(format!("operand 0 of select must be pred, it is {}", brief(pred))));
    }
    expect_equal("operands 1 and 2 of select", on_true, on_false)?;
    if !pred.is_scalar() && !pred.same_dims(on_true) {
        return Err(Error::invalid_argument(format!(
            "operand 0 of select must be a scalar or have the dimensions of the others: {} and {}",
            brief(pred),
            brief(on_true)
        )));
    }
    Ok(merged(on_true, on_false, on_true.element_type()))
}

pub(super) fn clamp(_: &Clamp, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (min, x, max) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    for (bound, name) in [(min, "least"), (max, "greatest")] {
        let fits = bound.is_scalar() || bound.same_dims(x);
        if bound.element_type() != x.element_type() || !fits {
            return Err(Error::invalid_argument(format!(
                "the {name} value of clamp must have the operand's element type and be a scalar or have its dimensions: \
                 {} and {}",
                brief(bound),
                brief(x)
            )));
        }
    }
    Ok(plain(x, x.element_type()))
}

pub(super) fn convert(_: &Convert, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (x, written) = (cx.array(0)?, cx.written_array()?);
    expect_dims("convert", x, written)?;
    let to = written.element_type();
    if x.element_type().is_complex() && !to.is_complex() {
        return Err(Error::invalid_argument(format!("convert cannot make {to} of {}; take its real part", brief(x))));
    }
    Ok(plain(x, to))
}

pub(super) fn bitcast_convert(_: &BitcastConvert, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (x, written) = (cx.array(0)?, cx.written_array()?);
    let (from, to) = (x.element_type(), written.element_type());
    if (from.is_complex() || to.is_complex()) && from != to {
        return Err(Error::invalid_argument(format!(
            "bitcast-convert of complex types returns the same type: {} and {}",
            brief(x),
            brief(written)
        )));
    }
    let dims = bitcast_dims(x, to).filter(|dims| dims == written.dims()).ok_or_else(|| {
        Error::invalid_argument(format!(
            "bitcast-convert keeps dimensions when types are equally wide, adds a minor dimension of the ratio of widths \
             when the result is narrower, and removes one when it is wider: {} and {}",
            brief(x),
            brief(written)
        ))
    })?;
    Ok(Shape::array(to, dims))
}

/// Returns the dimensions of a bitcast-convert to type `to`; `None` if the widths or the minor dimension do not fit.
fn bitcast_dims(x: &ArrayShape, to: ElementType) -> Option<Vec<usize>> {
    let (from_bits, to_bits) = (x.element_type().bit_width(), to.bit_width());
    let mut dims = x.dims().to_vec();
    if from_bits > to_bits {
        dims.push(from_bits / to_bits);
        return (from_bits % to_bits == 0).then_some(dims);
    }
    if from_bits < to_bits {
        let minor = dims.pop()?;
        return (minor.checked_mul(from_bits) == Some(to_bits)).then_some(dims);
    }
    Some(dims)
}

pub(super) fn reduce_precision(op: &ReducePrecision, cx: &ShapeContext<'_>) -> Result<Shape> {
    let x = cx.array(0)?;
    if !x.element_type().is_float() {
        return Err(Error::invalid_argument(format!(
            "the operand of reduce-precision must be float, it is {}",
            brief(x)
        )));
    }
    if op.exponent_bits < 1 {
        return Err(Error::invalid_argument("reduce-precision must leave at least 1 exponent bit"));
    }
    Ok(plain(x, x.element_type()))
}

/// Returns the error for an element type that an operation does not support; lists the supported kinds.
fn undefined(opcode: Opcode, ty: ElementType, is_defined: impl Fn(ElementType) -> bool) -> Error {
    let kinds = [
        (ElementType::Pred, "pred"),
        (ElementType::S32, "signed integer"),
        (ElementType::U32, "unsigned integer"),
        (ElementType::F32, "float"),
        (ElementType::C64, "complex"),
    ];
    let names: Vec<_> = kinds.iter().filter(|(ty, _)| is_defined(*ty)).map(|(_, name)| *name).collect();
    let kinds = names.join(", ");
    // An operation may support only some types of a kind: complex takes f32 and f64.
    Error::invalid_argument(format!("operands of {opcode} must be {kinds}; it is not defined for {ty}"))
}

/// Returns the two operands, which must have equal dimensions and element types.
fn equal_operands<'a>(opcode: Opcode, cx: &ShapeContext<'a>) -> Result<(&'a ArrayShape, &'a ArrayShape)> {
    let (a, b) = (cx.array(0)?, cx.array(1)?);
    expect_equal(&format!("operands of {opcode}"), a, b)?;
    Ok((a, b))
}

fn expect_equal(what: &str, a: &ArrayShape, b: &ArrayShape) -> Result<()> {
    if a.element_type() == b.element_type() && a.same_dims(b) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{what} must have equal dimensions and element type: {} and {}",
        brief(a),
        brief(b)
    )))
}

fn expect_dims(opcode: &str, operand: &ArrayShape, result: &ArrayShape) -> Result<()> {
    if operand.same_dims(result) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{opcode} keeps the dimensions of its operand: {} and {}",
        brief(operand),
        brief(result)
    )))
}

/// Returns the shape without its layout, for error messages.
fn brief(shape: &ArrayShape) -> ArrayShape {
    shape.clone().with_layout(None)
}

/// Returns the dimensions of `x` with another element type, without layout.
fn plain(x: &ArrayShape, ty: ElementType) -> Shape {
    brief(x).with_element_type(ty).into()
}

/// Returns the common dimensions of two shapes with another element type, without layout. A dimension that is dynamic
/// in either shape is dynamic in the result.
fn merged(a: &ArrayShape, b: &ArrayShape, ty: ElementType) -> Shape {
    let dynamism = (0..a.rank()).map(|d| if a.dynamism(d) == Dynamism::Static { b.dynamism(d) } else { a.dynamism(d) });
    brief(a).with_element_type(ty).with_dynamism(dynamism.collect()).into()
}
