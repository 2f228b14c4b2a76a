//! Functions of floats, computed in `f64`. The caller rounds results to the element type.
//!
//! All functions are from the `libm` crate and never from the system's library, so that the reference evaluator returns
//! the same bits on every machine. The errors of `libm` are below one ulp of `f64`, except in the functions that
//! [`double_double`] implements for `f64`. Narrower types use the faster `libm` functions, whose errors vanish when
//! results are rounded.

use super::{BinaryOp, UnaryOp, double_double};
use crate::ElementType;

/// Function of one float, by its result.
#[derive(Clone, Copy)]
pub(super) enum RealUnary {
    /// Returns a float of the same type.
    Real(fn(f64) -> f64),
    /// Returns a boolean.
    Pred(fn(f64) -> bool),
}

/// Returns the function of an operation on floats of type `ty`, or `None` if it has none.
pub(super) fn unary(op: UnaryOp, ty: ElementType) -> Option<RealUnary> {
    use UnaryOp::*;
    let wide = ty == ElementType::F64;
    let function: fn(f64) -> f64 = match op {
        Abs => f64::abs,
        Acos => libm::acos,
        Acosh if wide => double_double::acosh,
        // For large negative numbers `libm` computes the logarithm of a number close to zero.
        Acosh => |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) },
        Asin => libm::asin,
        Asinh if wide => double_double::asinh,
        Asinh => libm::asinh,
        Atan => libm::atan,
        Atanh if wide => double_double::atanh,
        Atanh => libm::atanh,
        Cbrt => libm::cbrt,
        Ceil => f64::ceil,
        Cosh if wide => double_double::cosh,
        Cosh => libm::cosh,
        Cosine => libm::cos,
        Erf => libm::erf,
        Exponential if wide => double_double::exp,
        Exponential => libm::exp,
        ExponentialMinusOne if wide => double_double::expm1,
        ExponentialMinusOne => libm::expm1,
        Floor => f64::floor,
        Imag => |_| 0.0,
        IsFinite => return Some(RealUnary::Pred(f64::is_finite)),
        Log if wide => double_double::log,
        Log => libm::log,
        LogPlusOne if wide => double_double::log1p,
        LogPlusOne => libm::log1p,
        Logistic if wide => double_double::logistic,
        Logistic => logistic,
        Negate => |x| -x,
        Real => |x| x,
        RoundNearestAfz => f64::round,
        RoundNearestEven => f64::round_ties_even,
        Rsqrt if wide => double_double::rsqrt,
        Rsqrt => |x| 1.0 / libm::sqrt(x),
        Sign => sign,
        Sine => libm::sin,
        Sinh if wide => double_double::sinh,
        Sinh => libm::sinh,
        Sqrt => libm::sqrt,
        Tan => libm::tan,
        Tanh if wide => double_double::tanh,
        Tanh => libm::tanh,
        CountLeadingZeros | Not | Popcnt => return None,
    };
    Some(RealUnary::Real(function))
}

/// Returns the function of an operation on floats of type `ty`, or `None` if it has none. `complex` has none, because
/// its result has another type.
pub(super) fn binary(op: BinaryOp, ty: ElementType) -> Option<fn(f64, f64) -> f64> {
    use BinaryOp::*;
    match op {
        Add => Some(|a, b| a + b),
        Atan2 if ty == ElementType::F64 => Some(double_double::atan2),
        Atan2 => Some(libm::atan2),
        Divide => Some(|a, b| a / b),
        Maximum => Some(maximum),
        Minimum => Some(minimum),
        Multiply => Some(|a, b| a * b),
        Power => Some(libm::pow),
        Remainder => Some(|a, b| a % b),
        Subtract => Some(|a, b| a - b),
        And | Complex | Mulhi | Or | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Xor => None,
    }
}

/// Returns the greater number, or the first NaN; +0 is greater than -0.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b }
}

/// Returns the lesser number, or the first NaN; -0 is less than +0.
pub(super) fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// Returns -1 or 1; zero and NaN are returned unchanged.
fn sign(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 { x } else { 1f64.copysign(x) }
}

/// Returns 1 / (1 + e^-x), computed with the exponential that does not overflow.
fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        return 1.0 / (1.0 + libm::exp(-x));
    }
    let e = libm::exp(x);
    e / (1.0 + e)
}
