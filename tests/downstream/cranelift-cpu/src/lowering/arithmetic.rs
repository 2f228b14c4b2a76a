//! Elementwise operations: inline for integers of whole bytes, f32 and f64 if the processor has instructions for them,
//! otherwise by the evaluator's function.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value};
use xla::hlo::ops::{Binary, BinaryOp, Compare, CompareDirection, CompareType, Op, UnaryOp};
use xla::hlo::{ElementKind, ElementType, Scalar};

use super::convert::{self, is_integer};
use crate::builder::{KernelBuilder, as_bits, value_type};

/// Applies an operation to one element of each operand; `None` if it is not elementwise.
pub(super) fn apply(
    k: &mut KernelBuilder<'_>,
    op: &Op,
    operands: &[(Value, ElementType)],
    result: ElementType,
) -> Option<Value> {
    inline(k, op, operands, result).or_else(|| k.apply(op, operands, result))
}

/// Applies a binary operation whose operands and result have one type.
pub(super) fn binary(k: &mut KernelBuilder<'_>, op: BinaryOp, ty: ElementType, a: Value, b: Value) -> Option<Value> {
    apply(k, &Op::from(Binary { op }), &[(a, ty), (b, ty)], ty)
}

fn inline(k: &mut KernelBuilder<'_>, op: &Op, operands: &[(Value, ElementType)], result: ElementType) -> Option<Value> {
    match (op, operands) {
        (Op::Unary(op), &[(x, ty)]) => unary(k, op.op, ty, x),
        (Op::Binary(op), &[(a, ty), (b, _)]) => match ty {
            ElementType::F32 | ElementType::F64 => float_binary(k, op.op, ty, a, b),
            ElementType::Pred => pred_binary(k, op.op, a, b),
            _ if is_integer(ty) => integer_binary(k, op.op, ty, a, b),
            _ => None,
        },
        (Op::Compare(op), &[(a, ty), (b, _)]) => compare(k, op, ty, a, b),
        (Op::Select(_), &[(condition, _), (a, _), (b, _)]) => Some(k.f.ins().select(condition, a, b)),
        (Op::Clamp(_), &[(min, ty), (x, _), (max, _)]) if !ty.is_complex() => {
            let x = binary(k, BinaryOp::Maximum, ty, min, x)?;
            binary(k, BinaryOp::Minimum, ty, x, max)
        }
        (Op::Convert(_), &[(x, ty)]) => convert::inline(k, x, ty, result),
        (Op::BitcastConvert(_), &[(x, ty)]) if [ty, result].iter().all(|ty| ty.bit_width() == 8 * ty.byte_width()) => {
            Some(as_bits(k, x, value_type(result)))
        }
        _ => None,
    }
}

fn unary(k: &mut KernelBuilder<'_>, op: UnaryOp, ty: ElementType, x: Value) -> Option<Value> {
    if ty == ElementType::Pred || is_integer(ty) {
        return match op {
            UnaryOp::Not if ty == ElementType::Pred => Some(k.f.ins().bxor_imm_s(x, 1)),
            UnaryOp::Not => Some(k.f.ins().bnot(x)),
            UnaryOp::Negate => Some(k.f.ins().ineg(x)),
            _ => None,
        };
    }
    if !matches!(ty, ElementType::F32 | ElementType::F64) {
        return None;
    }
    Some(match op {
        UnaryOp::Negate => k.f.ins().fneg(x),
        UnaryOp::Abs => k.f.ins().fabs(x),
        UnaryOp::Sqrt => k.f.ins().sqrt(x),
        UnaryOp::Floor => k.f.ins().floor(x),
        UnaryOp::Ceil => k.f.ins().ceil(x),
        UnaryOp::RoundNearestEven => k.f.ins().nearest(x),
        UnaryOp::IsFinite => {
            let (size, infinity) = (k.f.ins().fabs(x), k.constant(ty, Scalar::Float(f64::INFINITY)));
            k.f.ins().fcmp(FloatCC::LessThan, size, infinity)
        }
        _ => return None,
    })
}

fn float_binary(k: &mut KernelBuilder<'_>, op: BinaryOp, ty: ElementType, a: Value, b: Value) -> Option<Value> {
    Some(match op {
        BinaryOp::Add => k.f.ins().fadd(a, b),
        BinaryOp::Subtract => k.f.ins().fsub(a, b),
        BinaryOp::Multiply => k.f.ins().fmul(a, b),
        BinaryOp::Divide => k.f.ins().fdiv(a, b),
        BinaryOp::Maximum => extreme(k, ty, (FloatCC::GreaterThan, IntCC::SignedGreaterThanOrEqual), a, b),
        BinaryOp::Minimum => extreme(k, ty, (FloatCC::LessThan, IntCC::SignedLessThan), a, b),
        _ => return None,
    })
}

/// Returns a NaN operand if there is one (the first of two), otherwise the better number; of equal zeros, the one whose
/// sign is better.
fn extreme(k: &mut KernelBuilder<'_>, ty: ElementType, better: (FloatCC, IntCC), a: Value, b: Value) -> Value {
    let is_nan = k.f.ins().fcmp(FloatCC::Unordered, a, a);
    let is_better = k.f.ins().fcmp(better.0, a, b);
    let is_equal = k.f.ins().fcmp(FloatCC::Equal, a, b);
    let bits = as_bits(k, a, value_type(ty).as_int());
    let has_sign = k.f.ins().icmp_imm_s(better.1, bits, 0);
    let is_equal = k.f.ins().band(is_equal, has_sign);
    let takes_a = k.f.ins().bor(is_nan, is_better);
    let takes_a = k.f.ins().bor(takes_a, is_equal);
    k.f.ins().select(takes_a, a, b)
}

fn pred_binary(k: &mut KernelBuilder<'_>, op: BinaryOp, a: Value, b: Value) -> Option<Value> {
    match op {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Or => Some(k.f.ins().bor(a, b)),
        BinaryOp::Multiply | BinaryOp::Minimum | BinaryOp::And => Some(k.f.ins().band(a, b)),
        BinaryOp::Xor => Some(k.f.ins().bxor(a, b)),
        _ => None,
    }
}

fn integer_binary(k: &mut KernelBuilder<'_>, op: BinaryOp, ty: ElementType, a: Value, b: Value) -> Option<Value> {
    Some(match op {
        BinaryOp::Add => k.f.ins().iadd(a, b),
        BinaryOp::Subtract => k.f.ins().isub(a, b),
        BinaryOp::Multiply => k.f.ins().imul(a, b),
        BinaryOp::And => k.f.ins().band(a, b),
        BinaryOp::Or => k.f.ins().bor(a, b),
        BinaryOp::Xor => k.f.ins().bxor(a, b),
        BinaryOp::Maximum | BinaryOp::Minimum => {
            let direction = if op == BinaryOp::Maximum { CompareDirection::Gt } else { CompareDirection::Lt };
            let takes_a = k.f.ins().icmp(integer_order(direction, ty), a, b);
            k.f.ins().select(takes_a, a, b)
        }
        BinaryOp::ShiftLeft | BinaryOp::ShiftRightLogical | BinaryOp::ShiftRightArithmetic => shifted(k, op, ty, a, b),
        // Division has defined results for a zero divisor and for overflow.
        _ => return None,
    })
}

/// Shifts; a distance of at least the width results in zero, or in the sign in all bits.
fn shifted(k: &mut KernelBuilder<'_>, op: BinaryOp, ty: ElementType, a: Value, distance: Value) -> Value {
    let (int, bits) = (value_type(ty), ty.bit_width() as i64);
    let is_inside = k.f.ins().icmp_imm_s(IntCC::UnsignedLessThan, distance, bits);
    if op == BinaryOp::ShiftRightArithmetic {
        let last = k.f.ins().iconst(int, bits - 1);
        let distance = k.f.ins().select(is_inside, distance, last);
        return k.f.ins().sshr(a, distance);
    }
    let zero = k.f.ins().iconst(int, 0);
    let moved = if op == BinaryOp::ShiftLeft { k.f.ins().ishl(a, distance) } else { k.f.ins().ushr(a, distance) };
    k.f.ins().select(is_inside, moved, zero)
}

fn integer_order(direction: CompareDirection, ty: ElementType) -> IntCC {
    let signed = match direction {
        CompareDirection::Eq => IntCC::Equal,
        CompareDirection::Ne => IntCC::NotEqual,
        CompareDirection::Ge => IntCC::SignedGreaterThanOrEqual,
        CompareDirection::Gt => IntCC::SignedGreaterThan,
        CompareDirection::Le => IntCC::SignedLessThanOrEqual,
        CompareDirection::Lt => IntCC::SignedLessThan,
    };
    if ty.kind() == ElementKind::Signed { signed } else { signed.unsigned() }
}

fn compare(k: &mut KernelBuilder<'_>, op: &Compare, ty: ElementType, a: Value, b: Value) -> Option<Value> {
    if is_integer(ty) || ty == ElementType::Pred && op.order_for(ty) != CompareType::TotalOrder {
        // Integers have one order.
        return Some(k.f.ins().icmp(integer_order(op.direction, ty), a, b));
    }
    if !matches!(ty, ElementType::F32 | ElementType::F64) || op.order_for(ty) != CompareType::Float {
        return None;
    }
    let order = match op.direction {
        CompareDirection::Eq => FloatCC::Equal,
        CompareDirection::Ne => FloatCC::NotEqual,
        CompareDirection::Ge => FloatCC::GreaterThanOrEqual,
        CompareDirection::Gt => FloatCC::GreaterThan,
        CompareDirection::Le => FloatCC::LessThanOrEqual,
        CompareDirection::Lt => FloatCC::LessThan,
    };
    Some(k.f.ins().fcmp(order, a, b))
}
