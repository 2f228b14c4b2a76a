//! Binary operations with a constant, as XLA has them when it lowers: the constant second, and nothing for one that
//! changes no value.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{InstrId, Scalar};

use super::context::Lowering;

/// The operand that the result is, bit for bit.
pub(super) fn unchanged(lowering: &mut Lowering<'_>, op: BinaryOp, [x, y]: [InstrId; 2]) -> Option<InstrId> {
    let constant = lowering.literal(y)?.uniform()?;
    let is_identity = match (op, constant) {
        // A negative zero plus zero is zero.
        (BinaryOp::Add, Scalar::Signed(0) | Scalar::Unsigned(0)) => true,
        (BinaryOp::Subtract, Scalar::Signed(0) | Scalar::Unsigned(0)) => true,
        (BinaryOp::Subtract, Scalar::Float(zero)) => zero == 0.0 && zero.is_sign_positive(),
        (BinaryOp::Multiply, Scalar::Signed(1) | Scalar::Unsigned(1)) => true,
        (BinaryOp::Multiply, Scalar::Float(one)) => one == 1.0,
        _ => false,
    };
    is_identity.then_some(x)
}

/// The operands of a commutative operation with a constant second.
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
