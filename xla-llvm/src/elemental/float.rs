//! Functions of floating-point numbers; narrow types are computed in lanes of `f32`.

use xla_hlo::ElementType;
use xla_hlo::ops::{BinaryOp, UnaryOp};

use super::gpu;
use super::value::Value;
use crate::lanes::Lanes;
use crate::math;

pub(super) fn unary<'e, 'ctx>(op: UnaryOp, x: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use UnaryOp::*;
    let ty = x.element_type();
    let a = x.lanes();
    if let Some(result) = gpu::unary(op, ty, a) {
        return Some(Value::rounded(ty, result));
    }
    let result = match op {
        Abs => a.fabs(),
        Acos => math::acos(a),
        Acosh => math::acosh(a),
        Asin => math::asin(a),
        Asinh => math::asinh(a),
        Atan => math::atan(a),
        Atanh => math::atanh(a),
        Cbrt => math::cbrt(a),
        Ceil => a.ceil(),
        Cosh => math::cosh(a),
        Cosine => math::cos(a),
        Erf => math::erf(a),
        Exponential => math::exp(a),
        ExponentialMinusOne => math::expm1(a),
        Floor => a.floor(),
        Imag => a.constant(0.0),
        IsFinite => return Some(Value::new(ElementType::Pred, a.fabs().lt(f64::INFINITY))),
        Log => math::log(a),
        LogPlusOne => math::log1p(a),
        Logistic => math::logistic(a),
        Negate => -a,
        Real => return Some(x),
        RoundNearestAfz => math::round_away(a),
        RoundNearestEven => a.round_even(),
        Rsqrt => math::rsqrt(a),
        Sign => (a.is_nan() | a.eq(0.0)).select(a, a.constant(1.0).copysign(a)),
        Sine => math::sin(a),
        Sinh => math::sinh(a),
        Sqrt => a.sqrt(),
        Tan => math::tan(a),
        Tanh => math::tanh(a),
        CountLeadingZeros | Not | Popcnt => return None,
    };
    Some(Value::rounded(ty, result))
}

pub(super) fn binary<'e, 'ctx>(op: BinaryOp, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use BinaryOp::*;
    let ty = x.element_type();
    let (a, b) = (x.lanes(), y.lanes());
    let result = match op {
        Add => contracted(ty, a + b),
        Atan2 => math::atan2(a, b),
        Complex if ty.complex_of().is_some() => return ty.complex_of().map(|complex| Value::complex(complex, a, b)),
        Divide => gpu::divide(ty, a, b),
        Maximum => a.maximum(b),
        Minimum => a.minimum(b),
        Multiply => contracted(ty, a * b),
        Power => math::pow(a, b),
        Remainder => math::fmod(a, b),
        Subtract => contracted(ty, a - b),
        And | Complex | Mulhi | Or | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Xor => return None,
    };
    Some(Value::rounded(ty, result))
}

/// Marks an operation for contraction into an FMA, unless rounding to a narrower type comes between.
fn contracted<'e, 'ctx>(ty: ElementType, result: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let options = result.emitter().options();
    let wide = ty.bit_width() >= 32 || !options.round_each_operation;
    if wide && options.contract { result.contractable() } else { result }
}
