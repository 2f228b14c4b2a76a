//! Functions of one element.

use xla_hlo::ops::UnaryOp;
use xla_hlo::{ElementKind, ElementType, Error, Result};

use super::convert::wrapped;
use super::round::rounded;
use super::value::Value;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::math;

/// A function of one element.
pub fn unary<'e, 'ctx>(_: &'e Emitter<'ctx>, op: UnaryOp, x: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
    let ty = x.element_type();
    let lanes = x.lanes();
    let not_for = || Error::unimplemented(format!("{} of {ty} in native code", op.opcode()));
    match (op, x.imaginary()) {
        (UnaryOp::Real, _) => return Ok(Value::new(ty.real_part(), lanes)),
        (UnaryOp::Imag, Some(imaginary)) => return Ok(Value::new(ty.real_part(), imaginary)),
        (UnaryOp::Imag, None) => return Ok(Value::new(ty, lanes.constant(0.0))),
        (UnaryOp::Negate, Some(_)) => return Ok(x.map(|part| -part)),
        (_, Some(_)) => return Err(not_for()),
        (UnaryOp::IsFinite, None) if lanes.is_float() => {
            // Of all floats, only finite ones have a magnitude below infinity.
            let finite = lanes.fabs().lt(f64::INFINITY);
            return Ok(Value::new(ElementType::Pred, finite));
        }
        (_, None) => {}
    }
    let result = match ty.kind() {
        ElementKind::Pred => (op == UnaryOp::Not).then(|| !lanes),
        ElementKind::Signed | ElementKind::Unsigned => integer(op, ty, lanes).map(|x| wrapped(x, ty)),
        ElementKind::Float => float(op, lanes).map(|x| rounded(ty, x)),
        ElementKind::Complex => None,
    };
    result.map(|lanes| Value::new(ty, lanes)).ok_or_else(not_for)
}

fn integer<'e, 'ctx>(op: UnaryOp, ty: ElementType, x: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    let signed = ty.kind() == ElementKind::Signed;
    // At the declared width: what sign extension put above does not count.
    let bits = if ty.bit_width() < 8 { x & ((1 << ty.bit_width()) - 1) } else { x };
    Some(match op {
        UnaryOp::Abs if signed => x.lt(0).select(-x, x),
        UnaryOp::Abs => x,
        UnaryOp::Negate => -x,
        UnaryOp::Not => !x,
        UnaryOp::Sign if signed => x.gt(0).select(x.int(1), x.ashr(i64::from(x.scalar().bits()) - 1)),
        UnaryOp::Sign => x.ne(0).select(x.int(1), 0),
        UnaryOp::Popcnt => bits.popcount(),
        UnaryOp::CountLeadingZeros => bits.leading_zeros() - (i64::from(x.scalar().bits()) - ty.bit_width() as i64),
        _ => return None,
    })
}

fn float<'e, 'ctx>(op: UnaryOp, x: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    Some(match op {
        UnaryOp::Abs => x.fabs(),
        UnaryOp::Negate => -x,
        UnaryOp::Sign => sign(x),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::RoundNearestAfz => half_away(x),
        UnaryOp::RoundNearestEven => x.round_even(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => math::rsqrt(x),
        UnaryOp::Cbrt => math::cbrt(x),
        UnaryOp::Exponential => math::exp(x),
        UnaryOp::ExponentialMinusOne => math::expm1(x),
        UnaryOp::Log => math::log(x),
        UnaryOp::LogPlusOne => math::log1p(x),
        UnaryOp::Logistic => math::logistic(x),
        UnaryOp::Erf => math::erf(x),
        UnaryOp::Sine => math::sin(x),
        UnaryOp::Cosine => math::cos(x),
        UnaryOp::Tan => math::tan(x),
        UnaryOp::Asin => math::asin(x),
        UnaryOp::Acos => math::acos(x),
        UnaryOp::Atan => math::atan(x),
        UnaryOp::Sinh => math::sinh(x),
        UnaryOp::Cosh => math::cosh(x),
        UnaryOp::Tanh => math::tanh(x),
        UnaryOp::Asinh => math::asinh(x),
        UnaryOp::Acosh => math::acosh(x),
        UnaryOp::Atanh => math::atanh(x),
        UnaryOp::Not
        | UnaryOp::Popcnt
        | UnaryOp::CountLeadingZeros
        | UnaryOp::IsFinite
        | UnaryOp::Real
        | UnaryOp::Imag => return None,
    })
}

/// ±1, ±0 and NaN as they are.
fn sign<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let kept = x.eq(0.0) | x.is_nan();
    kept.select(x, x.constant(1.0).copysign(x))
}

/// Half-way cases away from zero: what truncation leaves decides, since adding a half first would round.
fn half_away<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let whole = x.truncate();
    let left = (x - whole).fabs();
    let step = left.ge(0.5).select(x.constant(1.0).copysign(x), 0.0);
    // Numbers without a fraction, infinities among them, leave nothing (or NaN) over and stay.
    let rounded = (whole + step).copysign(x);
    let limit = if x.scalar() == Scalar::F64 { 2f64.powi(52) } else { 2f64.powi(23) };
    x.fabs().lt(limit).select(rounded, x)
}
