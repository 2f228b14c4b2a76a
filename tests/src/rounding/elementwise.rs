//! Error bounds of elementwise operations.

use xla::Result;
use xla_hlo::ops::{BinaryOp, Op, UnaryOp};
use xla_hlo::{ElementType, Literal};

use super::{Measured, number, rounding, unknown, wide};

/// Error of a function in roundings of the type in which it is computed; the error of arithmetic is one rounding.
const FUNCTION: f64 = 4.0;

/// Returns the error of a function with a result of magnitude `size`.
fn function(ty: ElementType, size: f64) -> f64 {
    let narrowed = if wide(ty) == ty { 0.0 } else { rounding(ty, size) };
    FUNCTION * rounding(wide(ty), size) + narrowed
}

/// Element with its error.
#[derive(Clone, Copy)]
struct Element {
    value: f64,
    error: f64,
}

/// Measures the result of an elementwise operation.
pub(super) fn measured(op: &Op, operands: &[Measured], value: Literal) -> Result<Measured> {
    let ty = value.array_shape().element_type();
    // Bounds and predicates may be scalars.
    let element = |k: usize, i: usize| {
        let i = if operands[k].count() == 1 { 0 } else { i };
        Element { value: operands[k].number(i), error: operands[k].error(i) }
    };
    let is_exact = operands.iter().all(|operand| operand.error.is_none());
    let result = |i| number(&value, i);
    let error: Box<dyn Fn(usize) -> f64> = match op {
        Op::Unary(op) => {
            let propagate = unary(op.op).ok_or_else(|| unknown(op.op.opcode()))?;
            let is_exact = matches!(
                op.op,
                UnaryOp::Negate
                    | UnaryOp::Abs
                    | UnaryOp::Sign
                    | UnaryOp::IsFinite
                    | UnaryOp::Not
                    | UnaryOp::Floor
                    | UnaryOp::Ceil
            );
            Box::new(move |i| {
                let x = element(0, i);
                let passed = if x.error == 0.0 { 0.0 } else { propagate(x, result(i)) };
                passed + if is_exact { 0.0 } else { function(ty, result(i).abs()) }
            })
        }
        Op::Binary(op) => {
            let op = op.op;
            if !ty.is_float() && !is_exact && !matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor) {
                return Err(unknown(format!("{} of integers that depend on rounding", op.opcode())));
            }
            binary(op, element(0, 0), element(0, 0), 0.0, ty).ok_or_else(|| unknown(op.opcode()))?;
            Box::new(move |i| binary(op, element(0, i), element(1, i), result(i), ty).unwrap_or(f64::INFINITY))
        }
        Op::Compare(_) => Box::new(move |i| compare(element(0, i), element(1, i))),
        Op::Select(_) => Box::new(move |i| {
            let (a, b) = (element(1, i), element(2, i));
            match (element(0, i).error > 0.0, element(0, i).value != 0.0) {
                (true, _) => a.error.max(b.error) + (a.value - b.value).abs(),
                (false, true) => a.error,
                (false, false) => b.error,
            }
        }),
        Op::Clamp(_) => Box::new(move |i| (0..3).map(|k| element(k, i).error).fold(0.0, f64::max)),
        Op::Convert(_) => {
            let is_wider = operands[0].ty().is_float() && ty.bit_width() >= operands[0].ty().bit_width();
            Box::new(move |i| match (element(0, i), ty.is_float()) {
                (x, true) => x.error + if is_wider { 0.0 } else { rounding(ty, x.value.abs()) },
                // The neighbouring integer may be the result.
                (x, false) if x.error > 0.0 => x.error.ceil(),
                (_, false) => 0.0,
            })
        }
        Op::ReducePrecision(op) => {
            let unit = 0.5f64.powi(op.mantissa_bits as i32);
            Box::new(move |i| element(0, i).error + unit * element(0, i).value.abs())
        }
        op => return Err(unknown(op.opcode())),
    };
    Measured::new(value.clone(), error)
}

/// Returns the propagation of a positive error of the argument through a function, given its result.
fn unary(op: UnaryOp) -> Option<fn(Element, f64) -> f64> {
    Some(match op {
        UnaryOp::Negate | UnaryOp::Abs | UnaryOp::Sine | UnaryOp::Cosine | UnaryOp::Not => |x, _| x.error,
        UnaryOp::Exponential => |x, result| result * x.error.exp_m1(),
        UnaryOp::ExponentialMinusOne => |x, result| (result + 1.0) * x.error.exp_m1(),
        UnaryOp::Log => |x, _| inverse(x.value - x.error) * x.error,
        UnaryOp::LogPlusOne => |x, _| inverse(1.0 + x.value - x.error) * x.error,
        UnaryOp::Logistic => |x, _| 0.25 * x.error,
        UnaryOp::Tanh => |x, result| x.error * (1.0 - (result.abs() - x.error).max(0.0).powi(2)),
        UnaryOp::Erf => |x, _| std::f64::consts::FRAC_2_SQRT_PI * x.error,
        UnaryOp::Sqrt => |x, _| x.error.sqrt().min(0.5 * x.error * inverse((x.value - x.error).max(0.0).sqrt())),
        UnaryOp::Rsqrt => |x, _| 0.5 * x.error * inverse(x.value - x.error).powf(1.5),
        UnaryOp::Cbrt => |x, _| 1.6 * x.error.cbrt(),
        UnaryOp::Sign => |x, _| if x.error < x.value.abs() { 0.0 } else { 2.0 },
        UnaryOp::Floor => |x, _| (x.value + x.error).floor() - (x.value - x.error).floor(),
        UnaryOp::Ceil => |x, _| (x.value + x.error).ceil() - (x.value - x.error).ceil(),
        UnaryOp::IsFinite => |_, _| 0.0,
        _ => return None,
    })
}

/// Returns `1 / x`, or infinity if `x` may be 0 or of the other sign.
fn inverse(x: f64) -> f64 {
    if x > 0.0 { 1.0 / x } else { f64::INFINITY }
}

fn binary(op: BinaryOp, x: Element, y: Element, result: f64, ty: ElementType) -> Option<f64> {
    let (a, b) = (x.value.abs(), y.value.abs());
    let rounded = rounding(ty, result.abs());
    Some(match op {
        BinaryOp::Add | BinaryOp::Subtract => x.error + y.error + rounded,
        BinaryOp::Multiply => scaled(y.error, a) + scaled(x.error, b) + x.error * y.error + rounded,
        BinaryOp::Divide if x.error == 0.0 && y.error == 0.0 => rounded,
        BinaryOp::Divide => (x.error + scaled(y.error, result.abs())) * inverse(b - y.error) + rounded,
        BinaryOp::Maximum => extreme(result, [x, y].map(|x| x.value - x.error), [x, y].map(|x| x.value + x.error))
            .min(x.error.max(y.error)),
        BinaryOp::Minimum => extreme(-result, [x, y].map(|x| -x.value - x.error), [x, y].map(|x| -x.value + x.error))
            .min(x.error.max(y.error)),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => x.error.max(y.error),
        BinaryOp::Power => {
            let passed = scaled(x.error, b * inverse(a - x.error)) + scaled(y.error, a.ln().abs());
            scaled(passed, result.abs()) + function(ty, result.abs())
        }
        BinaryOp::Remainder if x.error == 0.0 && y.error == 0.0 => 0.0,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRightArithmetic | BinaryOp::ShiftRightLogical
            if x.error == 0.0 && y.error == 0.0 =>
        {
            0.0
        }
        _ => return None,
    })
}

/// Returns the error of the greatest of two values with bounds.
fn extreme(result: f64, low: [f64; 2], high: [f64; 2]) -> f64 {
    super::extreme(result, low[0].max(low[1]), high[0].max(high[1]))
}

/// Returns `error * size`, which is zero for a zero error even if `size` is infinite.
fn scaled(error: f64, size: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error * size }
}

/// Returns 1 if rounding may change the truth value.
fn compare(x: Element, y: Element) -> f64 {
    let error = x.error + y.error;
    if error == 0.0 || (x.value - y.value).abs() > error { 0.0 } else { 1.0 }
}
