//! Functions of integers and booleans.
//!
//! Integers are sign-extended or zero-extended to 64 bits and passed with their bit width. The caller wraps results to
//! that width. Corner cases (division by zero, overflow, shifts beyond the width) follow XLA.

use super::{BinaryOp, UnaryOp};
use crate::literal::scalar::{mask, sign_extend};

/// Returns the function of an operation on booleans, or `None` if it has none.
pub(super) fn pred_unary(op: UnaryOp) -> Option<fn(bool) -> bool> {
    use UnaryOp::*;
    match op {
        Not => Some(|x| !x),
        Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | CountLeadingZeros | Erf
        | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Negate
        | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh => None,
    }
}

/// Returns the function of an operation on booleans, or `None` if it has none. Addition is OR, multiplication AND.
pub(super) fn pred_binary(op: BinaryOp) -> Option<fn(bool, bool) -> bool> {
    use BinaryOp::*;
    match op {
        Add | Maximum | Or => Some(|a, b| a | b),
        Multiply | Minimum | And => Some(|a, b| a & b),
        Xor => Some(|a, b| a ^ b),
        Atan2 | Complex | Divide | Mulhi | Power | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical
        | Subtract => None,
    }
}

/// Returns the function of an operation on signed integers of a bit width, or `None` if it has none.
pub(super) fn signed_unary(op: UnaryOp) -> Option<fn(i64, u32) -> i64> {
    use UnaryOp::*;
    match op {
        Abs => Some(|x, _| x.wrapping_abs()),
        CountLeadingZeros => Some(|x, bits| leading_zeros(x as u64, bits) as i64),
        Negate => Some(|x, _| x.wrapping_neg()),
        Not => Some(|x, _| !x),
        Popcnt => Some(|x, bits| ones(x as u64, bits) as i64),
        Sign => Some(|x, _| x.signum()),
        Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | Erf | Exponential
        | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Real | RoundNearestAfz
        | RoundNearestEven | Rsqrt | Sine | Sinh | Sqrt | Tan | Tanh => None,
    }
}

/// Returns the function of an operation on unsigned integers of a bit width, or `None` if it has none.
pub(super) fn unsigned_unary(op: UnaryOp) -> Option<fn(u64, u32) -> u64> {
    use UnaryOp::*;
    match op {
        CountLeadingZeros => Some(leading_zeros),
        Negate => Some(|x, _| x.wrapping_neg()),
        Not => Some(|x, _| !x),
        Popcnt => Some(ones),
        Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | Erf | Exponential
        | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Real | RoundNearestAfz
        | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh => None,
    }
}

/// Returns the function of an operation on signed integers of a bit width, or `None` if it has none.
pub(super) fn signed_binary(op: BinaryOp) -> Option<fn(i64, i64, u32) -> i64> {
    use BinaryOp::*;
    match op {
        Add => Some(|a, b, _| a.wrapping_add(b)),
        And => Some(|a, b, _| a & b),
        Divide => Some(|a, b, _| if b == 0 { -1 } else { a.wrapping_div(b) }),
        Maximum => Some(|a, b, _| a.max(b)),
        Minimum => Some(|a, b, _| a.min(b)),
        Mulhi => Some(|a, b, bits| ((i128::from(a) * i128::from(b)) >> bits) as i64),
        Multiply => Some(|a, b, _| a.wrapping_mul(b)),
        Or => Some(|a, b, _| a | b),
        Power => Some(signed_power),
        Remainder => Some(|a, b, _| if b == 0 { a } else { a.wrapping_rem(b) }),
        ShiftLeft => Some(|a, b, bits| shift_left(a as u64, b as u64, bits) as i64),
        ShiftRightArithmetic => Some(|a, b, bits| shift_right_arithmetic(a as u64, b as u64, bits) as i64),
        ShiftRightLogical => Some(|a, b, bits| shift_right_logical(a as u64, b as u64, bits) as i64),
        Subtract => Some(|a, b, _| a.wrapping_sub(b)),
        Xor => Some(|a, b, _| a ^ b),
        Atan2 | Complex => None,
    }
}

/// Returns the function of an operation on unsigned integers of a bit width, or `None` if it has none.
pub(super) fn unsigned_binary(op: BinaryOp) -> Option<fn(u64, u64, u32) -> u64> {
    use BinaryOp::*;
    match op {
        Add => Some(|a, b, _| a.wrapping_add(b)),
        And => Some(|a, b, _| a & b),
        Divide => Some(|a, b, _| a.checked_div(b).unwrap_or(u64::MAX)),
        Maximum => Some(|a, b, _| a.max(b)),
        Minimum => Some(|a, b, _| a.min(b)),
        Mulhi => Some(|a, b, bits| ((u128::from(a) * u128::from(b)) >> bits) as u64),
        Multiply => Some(|a, b, _| a.wrapping_mul(b)),
        Or => Some(|a, b, _| a | b),
        Power => Some(|a, b, _| wrapping_power(a, b)),
        Remainder => Some(|a, b, _| a.checked_rem(b).unwrap_or(a)),
        ShiftLeft => Some(shift_left),
        ShiftRightArithmetic => Some(shift_right_arithmetic),
        ShiftRightLogical => Some(shift_right_logical),
        Subtract => Some(|a, b, _| a.wrapping_sub(b)),
        Xor => Some(|a, b, _| a ^ b),
        Atan2 | Complex => None,
    }
}

fn leading_zeros(x: u64, bits: u32) -> u64 {
    u64::from((x & mask(bits as usize)).leading_zeros() - (64 - bits))
}

fn ones(x: u64, bits: u32) -> u64 {
    u64::from((x & mask(bits as usize)).count_ones())
}

/// Returns the shift amount, or `None` if it is not below the bit width. Amounts are unsigned numbers of the operand's
/// width, so that negative amounts are large.
fn shift_amount(amount: u64, bits: u32) -> Option<u32> {
    u32::try_from(amount & mask(bits as usize)).ok().filter(|&n| n < bits)
}

fn shift_left(x: u64, amount: u64, bits: u32) -> u64 {
    shift_amount(amount, bits).map_or(0, |n| x << n)
}

fn shift_right_logical(x: u64, amount: u64, bits: u32) -> u64 {
    shift_amount(amount, bits).map_or(0, |n| (x & mask(bits as usize)) >> n)
}

/// Shifts right and fills with the top bit of the width, for unsigned types too.
fn shift_right_arithmetic(x: u64, amount: u64, bits: u32) -> u64 {
    let n = shift_amount(amount, bits).unwrap_or(bits - 1);
    (sign_extend(x, bits as usize) >> n) as u64
}

/// Raises to a power. A negative exponent results in 1 for base 1, and in 0 for every other base including -1.
fn signed_power(base: i64, exponent: i64, _: u32) -> i64 {
    match u64::try_from(exponent) {
        Ok(exponent) => wrapping_power(base as u64, exponent) as i64,
        Err(_) => i64::from(base == 1),
    }
}

fn wrapping_power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}
