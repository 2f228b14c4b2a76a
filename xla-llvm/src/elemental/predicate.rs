//! Functions of truth values: sums are disjunctions, products conjunctions.

use xla_hlo::ops::{BinaryOp, UnaryOp};

use crate::emitter::Emitter;
use crate::value::Value;

pub(super) fn unary<'ctx>(emitter: &Emitter<'ctx>, op: UnaryOp, x: Value<'ctx>) -> Option<Value<'ctx>> {
    use UnaryOp::*;
    match op {
        Not => Some(Value::computed(x.element_type(), !emitter.compute(x))),
        Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | CountLeadingZeros | Erf
        | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Negate
        | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh => None,
    }
}

pub(super) fn binary<'ctx>(
    emitter: &Emitter<'ctx>,
    op: BinaryOp,
    x: Value<'ctx>,
    y: Value<'ctx>,
) -> Option<Value<'ctx>> {
    use BinaryOp::*;
    let (a, b) = (emitter.compute(x), emitter.compute(y));
    let result = match op {
        Add | Maximum | Or => a | b,
        Multiply | Minimum | And => a & b,
        Xor => a ^ b,
        Atan2 | Complex | Divide | Mulhi | Power | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical
        | Subtract => return None,
    };
    Some(Value::computed(x.element_type(), result))
}
