//! Comparisons and choices.

use xla_hlo::ops::{BinaryOp, Compare, CompareDirection, CompareType};
use xla_hlo::{Error, Result};

use super::binary::binary;
use super::narrow_float;
use super::value::Value;
use crate::emitter::Emitter;
use crate::lanes::Lanes;

/// A comparison; the result is `pred`.
pub fn compare<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    op: &Compare,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let pred = |lanes| Ok(Value::new(xla_hlo::ElementType::Pred, lanes));
    let (a, b) = (x.lanes(), y.lanes());
    if let (Some(c), Some(d)) = (x.imaginary(), y.imaginary()) {
        return match op.direction {
            CompareDirection::Eq => pred(a.eq(b) & c.eq(d)),
            CompareDirection::Ne => pred(!(a.eq(b) & c.eq(d))),
            _ => Err(Error::internal("complex numbers have no order")),
        };
    }
    pred(match op.order_for(x.element_type()) {
        CompareType::Float => ordered(op.direction, a, b),
        CompareType::TotalOrder => signed(op.direction, total_order_key(x), total_order_key(y)),
        CompareType::Signed => signed(op.direction, a, b),
        CompareType::Unsigned => unsigned(op.direction, a, b),
    })
}

fn ordered<'e, 'ctx>(direction: CompareDirection, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match direction {
        CompareDirection::Eq => a.eq(b),
        CompareDirection::Ne => !a.eq(b),
        CompareDirection::Ge => a.ge(b),
        CompareDirection::Gt => a.gt(b),
        CompareDirection::Le => a.le(b),
        CompareDirection::Lt => a.lt(b),
    }
}

fn signed<'e, 'ctx>(direction: CompareDirection, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    ordered(direction, a, b)
}

fn unsigned<'e, 'ctx>(direction: CompareDirection, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match direction {
        CompareDirection::Eq => a.eq(b),
        CompareDirection::Ne => a.ne(b),
        CompareDirection::Ge => a.uge(b),
        CompareDirection::Gt => a.ugt(b),
        CompareDirection::Le => a.ule(b),
        CompareDirection::Lt => a.ult(b),
    }
}

/// Integers in the total order of floats: of negative numbers, all bits but the sign are flipped.
fn total_order_key<'e, 'ctx>(x: Value<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if !x.lanes().is_float() {
        return x.lanes();
    }
    let stored = narrow_float::encode(x.element_type(), x.lanes());
    let bits = if stored.is_float() { stored.bits() } else { stored };
    let width = i64::from(bits.scalar().bits());
    let flips = bits.ashr(width - 1).lshr(1);
    bits ^ flips
}

/// `x` where `pred`, else `y`.
pub fn select<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    pred: Value<'e, 'ctx>,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    Ok(select_lanes(pred.lanes(), x, y))
}

/// `x` in the lanes of the mask, else `y`.
pub fn select_lanes<'e, 'ctx>(mask: Lanes<'e, 'ctx>, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Value<'e, 'ctx> {
    let lanes = mask.select(x.lanes(), y.lanes());
    match (x.imaginary(), y.imaginary()) {
        (Some(a), Some(b)) => Value::complex(x.element_type(), lanes, mask.select(a, b)),
        _ => Value::new(x.element_type(), lanes),
    }
}

/// `min(max(low, x), high)`, NaN of any of the three coming out.
pub fn clamp<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    low: Value<'e, 'ctx>,
    x: Value<'e, 'ctx>,
    high: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let raised = binary(emitter, BinaryOp::Maximum, low, x)?;
    binary(emitter, BinaryOp::Minimum, raised, high)
}
