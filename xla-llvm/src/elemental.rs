//! The elementwise operations of HLO over lanes, for every element type: methods of [`Emitter`](crate::emitter::Emitter)
//! on [`Value`](crate::value::Value)s.
//!
//! Corner cases are those of the evaluator in `xla-hlo`. Floats narrower than `f32` are computed in `f32` and rounded
//! after each operation, if the emitter's options do not say otherwise. An operation that an element type does not have
//! is an `InvalidArgument`.

mod compare;
mod complex;
mod convert;
mod float;
pub(crate) mod format;
mod integer;
mod predicate;

use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementKind, ElementType, Error, Opcode, Result};

use crate::emitter::Emitter;
use crate::value::Value;

impl<'ctx> Emitter<'ctx> {
    /// A function of one element.
    pub fn unary(&self, op: UnaryOp, x: Value<'ctx>) -> Result<Value<'ctx>> {
        let ty = x.element_type();
        let value = match ty.kind() {
            ElementKind::Pred => predicate::unary(self, op, x),
            ElementKind::Signed | ElementKind::Unsigned => integer::unary(self, op, x),
            ElementKind::Float => float::unary(self, op, x),
            ElementKind::Complex => complex::unary(self, op, x),
        };
        value.ok_or_else(|| undefined(op.opcode(), ty))
    }

    /// A function of two elements of one type.
    pub fn binary(&self, op: BinaryOp, x: Value<'ctx>, y: Value<'ctx>) -> Result<Value<'ctx>> {
        let ty = same_type(op.opcode(), x, y)?;
        let value = match ty.kind() {
            ElementKind::Pred => predicate::binary(self, op, x, y),
            ElementKind::Signed | ElementKind::Unsigned => integer::binary(self, op, x, y),
            ElementKind::Float => float::binary(self, op, x, y),
            ElementKind::Complex => complex::binary(self, op, x, y),
        };
        value.ok_or_else(|| undefined(op.opcode(), ty))
    }
}

fn undefined(opcode: Opcode, ty: ElementType) -> Error {
    Error::invalid_argument(format!("{opcode} is not defined for {ty}"))
}

fn same_type(opcode: Opcode, x: Value<'_>, y: Value<'_>) -> Result<ElementType> {
    let (ty, other) = (x.element_type(), y.element_type());
    if ty == other {
        return Ok(ty);
    }
    Err(Error::invalid_argument(format!("the operands of {opcode} must have one element type, not {ty} and {other}")))
}
