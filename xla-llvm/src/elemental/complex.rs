//! Functions of complex numbers.

use xla_hlo::ops::{BinaryOp, UnaryOp};

use crate::emitter::Emitter;
use crate::math::Complex;
use crate::value::Value;

fn parts<'e, 'ctx>(emitter: &'e Emitter<'ctx>, x: Value<'ctx>) -> Complex<'e, 'ctx> {
    let [re, im] = emitter.complex_parts(x);
    Complex::new(re, im)
}

pub(super) fn unary<'ctx>(emitter: &Emitter<'ctx>, op: UnaryOp, x: Value<'ctx>) -> Option<Value<'ctx>> {
    use UnaryOp::*;
    let ty = x.element_type();
    let z = parts(emitter, x);
    let real = |lanes| Some(Value::computed(ty.real_part(), lanes));
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

pub(super) fn binary<'ctx>(
    emitter: &Emitter<'ctx>,
    op: BinaryOp,
    x: Value<'ctx>,
    y: Value<'ctx>,
) -> Option<Value<'ctx>> {
    use BinaryOp::*;
    let ty = x.element_type();
    let (a, b) = (parts(emitter, x), parts(emitter, y));
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
