//! Comparison, selection and clamping.

use xla_hlo::ops::{BinaryOp, Compare, CompareDirection, CompareType};
use xla_hlo::{ElementKind, ElementType, Error, Opcode, Result};

use super::complex::parts;
use super::value::{Value, may_wait};
use super::{binary, same_type};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// Compares two elements; the result is `pred`. Complex numbers only support equality.
///
/// Operands are rounded to their type first, even if [rounding may wait](crate::emitter::EmitOptions): a value that a
/// kernel computes again must equal its copy in memory, such as the elements of a row and their maximum.
pub fn compare<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    op: &Compare,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let ty = same_type(Opcode::Compare, x, y)?;
    let (direction, order) = (op.direction, op.order_for(ty));
    let equality = matches!(direction, CompareDirection::Eq | CompareDirection::Ne);
    let fits = match (order, ty.kind()) {
        (CompareType::Float, ElementKind::Complex) => equality,
        (CompareType::Float | CompareType::TotalOrder, ElementKind::Float) => true,
        (CompareType::Signed, ElementKind::Signed) => true,
        (CompareType::Unsigned, ElementKind::Unsigned | ElementKind::Pred) => true,
        (CompareType::Float | CompareType::TotalOrder | CompareType::Signed | CompareType::Unsigned, _) => false,
    };
    if !fits {
        return Err(Error::invalid_argument(format!("{ty} has no comparison {direction:?} of type {order:?}")));
    }
    let mask = if ty.is_complex() {
        let (a, b) = (parts(x), parts(y));
        let equal = a.re.eq(b.re) & a.im.eq(b.im);
        if direction == CompareDirection::Eq { equal } else { !equal }
    } else if order == CompareType::TotalOrder {
        let (x, y) = (total_order_key(ty, x.stored_lanes()), total_order_key(ty, y.stored_lanes()));
        ordered(direction, ty.is_signed(), x, y)
    } else {
        ordered(direction, ty.is_signed(), x.rounded_lanes(), y.rounded_lanes())
    };
    Ok(Value::new(ElementType::Pred, mask))
}

/// Selects `x` where `pred` is true, and `y` elsewhere; both have the same number of lanes.
pub fn select<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    pred: Value<'e, 'ctx>,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    same_type(Opcode::Select, x, y)?;
    if pred.element_type() != ElementType::Pred {
        return Err(Error::invalid_argument(format!("operand 0 of select must be pred, not {}", pred.element_type())));
    }
    Ok(select_lanes(pred.lanes(), x, y))
}

/// Selects `x` in the lanes of the mask, and `y` elsewhere; both have the same element type.
pub fn select_lanes<'e, 'ctx>(mask: Lanes<'e, 'ctx>, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Value<'e, 'ctx> {
    let ty = x.element_type();
    match (x.imaginary(), y.imaginary()) {
        (Some(a), Some(b)) => Value::complex(ty, mask.select(x.lanes(), y.lanes()), mask.select(a, b)),
        _ if is_computed(x, y) => Value::new(ty, mask.select(x.lanes(), y.lanes())),
        _ => Value::stored(ty, mask.select(x.stored_lanes(), y.stored_lanes())),
    }
}

/// Whether a selection of two values is in the computed form. Rounding that may wait is not worth a conversion.
fn is_computed(x: Value<'_, '_>, y: Value<'_, '_>) -> bool {
    match (x.is_computed(), y.is_computed()) {
        (a, b) if a == b => a,
        _ => may_wait(x.element_type(), x.emitter()),
    }
}

/// Returns `min(max(low, x), high)`; NaN if one of the three is NaN.
pub fn clamp<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    low: Value<'e, 'ctx>,
    x: Value<'e, 'ctx>,
    high: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let raised = binary(emitter, BinaryOp::Maximum, low, x)?;
    binary(emitter, BinaryOp::Minimum, raised, high)
}

fn ordered<'e, 'ctx>(
    direction: CompareDirection,
    signed: bool,
    x: Lanes<'e, 'ctx>,
    y: Lanes<'e, 'ctx>,
) -> Lanes<'e, 'ctx> {
    let signed = signed || x.is_float();
    match direction {
        CompareDirection::Eq => x.eq(y),
        CompareDirection::Ne => x.ne(y),
        CompareDirection::Ge if signed => x.ge(y),
        CompareDirection::Ge => x.uge(y),
        CompareDirection::Gt if signed => x.gt(y),
        CompareDirection::Gt => x.ugt(y),
        CompareDirection::Le if signed => x.le(y),
        CompareDirection::Le => x.ule(y),
        CompareDirection::Lt if signed => x.lt(y),
        CompareDirection::Lt => x.ult(y),
    }
}

/// Returns an integer with the total order of the patterns: -NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN.
fn total_order_key<'e, 'ctx>(ty: ElementType, stored: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = stored.cast_bits(Scalar::Int(stored.scalar().bits()));
    if !ty.is_signed() {
        return bits;
    }
    let lane_bits = i64::from(bits.scalar().bits());
    let pattern = bits << (lane_bits - ty.bit_width() as i64);
    // Negative patterns are in descending order: flip all bits but the sign.
    pattern ^ pattern.ashr(lane_bits - 1).lshr(1)
}
