//! Functions of complex numbers.

use xla_hlo::ops::{BinaryOp, UnaryOp};

use super::value::Value;
use crate::math::Complex;

pub(super) fn parts<'e, 'ctx>(x: Value<'e, 'ctx>) -> Complex<'e, 'ctx> {
    let re = x.lanes();
    Complex::new(re, x.imaginary().unwrap_or(re.constant(0.0)))
}

pub(super) fn unary<'e, 'ctx>(op: UnaryOp, x: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use UnaryOp::*;
    let ty = x.element_type();
    let z = parts(x);
    let real = |lanes| Some(Value::new(ty.real_part(), lanes));
    let result = match op {
        Abs => return real(z.abs()),
        Real => return real(z.re),
        Imag => return real(z.im),
        Acos => z.acos(),
        Acosh => z.acosh(),
        Asin => z.asin(),
        Asinh => z.asinh(),
        Atan => z.atan(),
        Atanh => z.atanh(),
        Cosh => z.cosh(),
        Cosine => z.cos(),
        Exponential => z.exp(),
        ExponentialMinusOne => z.expm1(),
        Log => z.log(),
        LogPlusOne => z.log1p(),
        Logistic => z.logistic(),
        Negate => z.negate(),
        Rsqrt => z.rsqrt(),
        Sign => z.sign(),
        Sine => z.sin(),
        Sinh => z.sinh(),
        Sqrt => z.sqrt(),
        Tan => z.tan(),
        Tanh => z.tanh(),
        Cbrt | Ceil | CountLeadingZeros | Erf | Floor | IsFinite | Not | Popcnt | RoundNearestAfz
        | RoundNearestEven => return None,
    };
    Some(Value::complex(ty, result.re, result.im))
}

pub(super) fn binary<'e, 'ctx>(op: BinaryOp, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use BinaryOp::*;
    let ty = x.element_type();
    let (a, b) = (parts(x), parts(y));
    let result = match op {
        Add => a.plus(b),
        Atan2 => a.atan2(b),
        Divide => a.divided_by(b),
        Maximum => a.maximum(b),
        Minimum => a.minimum(b),
        Multiply => a.times(b),
        Power => a.power(b),
        Subtract => a.minus(b),
        And | Complex | Mulhi | Or | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Xor => {
            return None;
        }
    };
    Some(Value::complex(ty, result.re, result.im))
}
