//! Functions of truth values: sums are disjunctions, products are conjunctions.

use xla_hlo::ops::{BinaryOp, UnaryOp};

use super::value::Value;

pub(super) fn unary<'e, 'ctx>(op: UnaryOp, x: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use UnaryOp::*;
    match op {
        Not => Some(Value::new(x.element_type(), !x.lanes())),
        Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | CountLeadingZeros | Erf
        | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Negate
        | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh => None,
    }
}

pub(super) fn binary<'e, 'ctx>(op: BinaryOp, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use BinaryOp::*;
    let (a, b) = (x.lanes(), y.lanes());
    let result = match op {
        Add | Maximum | Or => a | b,
        Multiply | Minimum | And => a & b,
        Xor => a ^ b,
        Atan2 | Complex | Divide | Mulhi | Power | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical
        | Subtract => return None,
    };
    Some(Value::new(x.element_type(), result))
}
