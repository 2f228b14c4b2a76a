//! Canonicalization of binary operations with a constant, as in XLA's lowering: the constant becomes the second
//! operand, and operations that do not change the value are removed.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{InstrId, Scalar};

use super::context::Lowering;

/// Returns the operand that equals the result bit for bit, if there is one.
pub(super) fn unchanged(lowering: &mut Lowering<'_>, op: BinaryOp, [x, y]: [InstrId; 2]) -> Option<InstrId> {
    let constant = lowering.literal(y)?.uniform()?;
    let is_identity = match (op, constant) {
        // Integers only: for floats, `-0.0 + 0.0` is `0.0`.
        (BinaryOp::Add, Scalar::Signed(0) | Scalar::Unsigned(0)) => true,
        (BinaryOp::Subtract, Scalar::Signed(0) | Scalar::Unsigned(0)) => true,
        (BinaryOp::Subtract, Scalar::Float(zero)) => zero == 0.0 && zero.is_sign_positive(),
        (BinaryOp::Multiply, Scalar::Signed(1) | Scalar::Unsigned(1)) => true,
        (BinaryOp::Multiply, Scalar::Float(one)) => one == 1.0,
        _ => false,
    };
    is_identity.then_some(x)
}

/// Orders the operands of a commutative operation such that a constant is second.
pub(super) fn constant_second(lowering: &mut Lowering<'_>, op: BinaryOp, [x, y]: [InstrId; 2]) -> [InstrId; 2] {
    let is_commutative = matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Multiply
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Maximum
            | BinaryOp::Minimum
    );
    if is_commutative && lowering.literal(x).is_some() && lowering.literal(y).is_none() { [y, x] } else { [x, y] }
}
