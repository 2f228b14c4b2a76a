//! Elementwise operations of HLO over lanes, for every element type.
//!
//! A [`Value`] is one HLO element in registers, for each lane of the surrounding code. Lanes have one of two forms,
//! which are converted on demand, so that data movement moves bits and a chain of operations converts no more than
//! necessary:
//!
//! | element type | stored: as in memory | computed: for arithmetic |
//! | --- | --- | --- |
//! | `pred` | `i8`, 0 or 1 | `i1`, a mask |
//! | `s1`..`s4`, `u1`..`u4` | `i8` | `i8`, sign- or zero-extended |
//! | `f16`, `bf16`, `f8*`, `f6*`, `f4*` | bits in `i16` or `i8` | `f32` |
//! | other integers, `f32`, `f64` | unchanged | unchanged |
//! | `c64`, `c128` | separate real and imaginary part | separate real and imaginary part |
//!
//! Corner cases agree with the evaluator in `xla-hlo`. Floats narrower than `f32` are computed in `f32` and rounded
//! after each operation, unless the emitter's options specify otherwise. An operation that is not defined for an
//! element type is an `InvalidArgument` error.

mod compare;
mod complex;
mod convert;
mod float;
mod format;
mod gpu;
mod integer;
mod memory;
mod outline;
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

/// Applies an operation of [`Family::Elementwise`](xla_hlo::ops::Family) to elements of its operands, which must all
/// have the same number of lanes; `result` is the element type of its result.
///
/// Fails with `Internal` for other operations or too few operands.
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
        _ => Err(Error::internal(format!(
            "{} with {} operands is not an elementwise operation",
            op.opcode(),
            operands.len()
        ))),
    }
}

/// Applies a function of one element.
pub fn unary<'e, 'ctx>(e: &'e Emitter<'ctx>, op: UnaryOp, x: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
    let ty = x.element_type();
    let value = match ty.kind() {
        ElementKind::Pred => predicate::unary(op, x),
        ElementKind::Signed | ElementKind::Unsigned => integer::unary(op, x),
        ElementKind::Float => outline::apply(e, op.opcode(), [x], |[x]| float::unary(op, x)),
        ElementKind::Complex => outline::apply(e, op.opcode(), [x], |[x]| complex::unary(op, x)),
    };
    value.ok_or_else(|| undefined(op.opcode(), ty))
}

/// Applies a function of two elements of one type, with the same number of lanes.
pub fn binary<'e, 'ctx>(
    e: &'e Emitter<'ctx>,
    op: BinaryOp,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let ty = same_type(op.opcode(), x, y)?;
    let value = match ty.kind() {
        ElementKind::Pred => predicate::binary(op, x, y),
        ElementKind::Signed | ElementKind::Unsigned => integer::binary(op, x, y),
        ElementKind::Float => outline::apply(e, op.opcode(), [x, y], |[x, y]| float::binary(op, x, y)),
        ElementKind::Complex => outline::apply(e, op.opcode(), [x, y], |[x, y]| complex::binary(op, x, y)),
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
