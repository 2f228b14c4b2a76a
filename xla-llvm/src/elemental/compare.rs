//! Comparison, selection and clamping.

use xla_hlo::ops::{CompareDirection, CompareType};
use xla_hlo::{ElementKind, ElementType, Error, Opcode, Result};

use super::same_type;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::value::Value;

impl<'ctx> Emitter<'ctx> {
    /// A comparison, as `pred`. Complex numbers have equality alone.
    pub fn compare(
        &self,
        direction: CompareDirection,
        order: CompareType,
        x: Value<'ctx>,
        y: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let ty = same_type(Opcode::Compare, x, y)?;
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
            let ([a, b], [c, d]) = (self.complex_parts(x), self.complex_parts(y));
            let equal = a.eq(c) & b.eq(d);
            if direction == CompareDirection::Eq { equal } else { !equal }
        } else if order == CompareType::TotalOrder {
            let (x, y) = (total_order_key(ty, self.store_form(x)), total_order_key(ty, self.store_form(y)));
            ordered(direction, ty.is_signed(), x, y)
        } else {
            ordered(direction, ty.is_signed(), self.compute(x), self.compute(y))
        };
        Ok(Value::computed(ElementType::Pred, mask))
    }

    /// `on_true` where `pred` is true, else `on_false`. The three must be equally wide; see [`Emitter::splat`].
    pub fn select(&self, pred: Value<'ctx>, on_true: Value<'ctx>, on_false: Value<'ctx>) -> Result<Value<'ctx>> {
        let ty = same_type(Opcode::Select, on_true, on_false)?;
        if pred.element_type() != ElementType::Pred {
            return Err(Error::invalid_argument(format!(
                "operand 0 of select must be pred, not {}",
                pred.element_type()
            )));
        }
        let mask = self.compute(pred);
        if ty.is_complex() {
            let ([a, b], [c, d]) = (self.complex_parts(on_true), self.complex_parts(on_false));
            return Ok(Value::complex(ty, mask.select(a, c), mask.select(b, d)));
        }
        // In the form that both are in already, else as bits.
        let (computed, kinds) = (self.compute(on_true), (on_true.is_computed(), on_false.is_computed()));
        if kinds == (true, true) {
            return Ok(Value::computed(ty, mask.select(computed, self.compute(on_false))));
        }
        Ok(Value::stored(ty, mask.select(self.store_form(on_true), self.store_form(on_false))))
    }

    /// `min(max(x, least), greatest)`; a NaN among the three is the result.
    pub fn clamp(&self, least: Value<'ctx>, x: Value<'ctx>, greatest: Value<'ctx>) -> Result<Value<'ctx>> {
        use xla_hlo::ops::BinaryOp::{Maximum, Minimum};
        same_type(Opcode::Clamp, least, x)?;
        let raised = self.binary(Maximum, least, x)?;
        self.binary(Minimum, raised, greatest)
    }
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

/// An integer whose order is the total order of the patterns: -NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN.
fn total_order_key<'e, 'ctx>(ty: ElementType, stored: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = stored.cast_bits(Scalar::Int(stored.scalar().bits()));
    if !ty.is_signed() {
        return bits;
    }
    let lane_bits = i64::from(bits.scalar().bits());
    let pattern = bits << (lane_bits - ty.bit_width() as i64);
    // Negative patterns count down: all bits but the sign are flipped.
    pattern ^ pattern.ashr(lane_bits - 1).lshr(1)
}
