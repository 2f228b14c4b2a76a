//! The elementwise operations of HLO over lanes, for every element type.
//!
//! A [`Value`] is what one HLO element is in registers, in as many lanes as the code around it works on. Lanes have one
//! of two forms, made into each other when needed, so that data movement moves bits and a chain of operations converts
//! no more than it must:
//!
//! | element type | stored: as in memory | computed: as arithmetic wants it |
//! | --- | --- | --- |
//! | `pred` | `i8`, 0 or 1 | `i1`, a mask |
//! | `s1`..`s4`, `u1`..`u4` | `i8` | `i8`, sign- or zero-extended |
//! | `f16`, `bf16`, `f8*`, `f6*`, `f4*` | their bits in `i16` or `i8` | `f32` |
//! | other integers, `f32`, `f64` | themselves | themselves |
//! | `c64`, `c128` | real and imaginary part, apart | the same |
//!
//! Corner cases are those of the evaluator in `xla-hlo`. Floats narrower than `f32` are computed in `f32` and rounded
//! after each operation, if the emitter's options do not say otherwise. An operation that an element type does not have
//! is an `InvalidArgument`.

mod compare;
mod complex;
mod convert;
mod float;
mod format;
mod gpu;
mod integer;
mod memory;
mod predicate;
mod scalar;
mod value;

use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementKind, ElementType, Error, Op, Opcode, Result};

use crate::emitter::Emitter;

pub use compare::{clamp, compare, select, select_lanes};
pub use convert::{bitcast_convert, clamped_index, convert, reduce_precision};
pub use memory::{array_bytes, constant, constant_array, gather, load, load_aligned, scatter, store, store_aligned};
pub(crate) use scalar::stored_scalar;
pub use value::Value;

/// An operation of [`Family::Elementwise`](xla_hlo::ops::Family) on elements of its operands, all in equally many
/// lanes; `result` is the element type of its result. `Error::Internal` for another operation or too few operands.
pub fn operation<'e, 'ctx>(
    e: &'e Emitter<'ctx>,
    op: &Op,
    operands: &[Value<'e, 'ctx>],
    result: ElementType,
) -> Result<Value<'e, 'ctx>> {
    match (op, operands) {
        (Op::Unary(op), &[x]) => unary(e, op.op, x),
        (Op::Binary(op), &[x, y]) => binary(e, op.op, x, y),
        (Op::Compare(op), &[x, y]) => compare(e, op, x, y),
        (Op::Select(_), &[predicate, x, y]) => select(e, predicate, x, y),
        (Op::Clamp(_), &[low, x, high]) => clamp(e, low, x, high),
        (Op::Convert(_), &[x]) => convert(e, x, result),
        (Op::BitcastConvert(_), &[x]) => bitcast_convert(e, x, result),
        (Op::ReducePrecision(op), &[x]) => reduce_precision(e, x, op.exponent_bits, op.mantissa_bits),
        _ => Err(Error::internal(format!("{} of {} elements is not elementwise", op.opcode(), operands.len()))),
    }
}

/// A function of one element.
pub fn unary<'e, 'ctx>(_: &'e Emitter<'ctx>, op: UnaryOp, x: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
    let ty = x.element_type();
    let value = match ty.kind() {
        ElementKind::Pred => predicate::unary(op, x),
        ElementKind::Signed | ElementKind::Unsigned => integer::unary(op, x),
        ElementKind::Float => float::unary(op, x),
        ElementKind::Complex => complex::unary(op, x),
    };
    value.ok_or_else(|| undefined(op.opcode(), ty))
}

/// A function of two elements of one type, in equally many lanes.
pub fn binary<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    op: BinaryOp,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let ty = same_type(op.opcode(), x, y)?;
    let value = match ty.kind() {
        ElementKind::Pred => predicate::binary(op, x, y),
        ElementKind::Signed | ElementKind::Unsigned => integer::binary(op, x, y),
        ElementKind::Float => float::binary(op, x, y),
        ElementKind::Complex => complex::binary(op, x, y),
    };
    value.ok_or_else(|| undefined(op.opcode(), ty))
}

fn undefined(opcode: Opcode, ty: ElementType) -> Error {
    Error::invalid_argument(format!("{opcode} is not defined for {ty}"))
}

fn same_type(opcode: Opcode, x: Value<'_, '_>, y: Value<'_, '_>) -> Result<ElementType> {
    let (ty, other) = (x.element_type(), y.element_type());
    if ty == other {
        return Ok(ty);
    }
    Err(Error::invalid_argument(format!("the operands of {opcode} must have one element type, not {ty} and {other}")))
}
