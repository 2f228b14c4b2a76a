//! Expands functions of one float into a few functions that every target has.

use std::collections::BTreeSet;

use xla_hlo::ops::{BinaryOp, CompareDirection, Unary, UnaryOp};
use xla_hlo::{ElementType, InstrId, Module, Op, Opcode, Result};

use super::erf;
use super::formulas::{Formula, Formulas};
use crate::framework::profile::EXPANDABLE_FUNCTIONS;
use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::is_static;
use crate::{Pass, PassContext};

/// Expands functions of one float that the target lacks into arithmetic, selects, `exponential`, `log`, `sine`,
/// `cosine`, `sqrt` and `atan2`.
///
/// `ceil`, `floor`, both roundings, `sign` and `is-finite` are exact unless the target reorders floating-point
/// arithmetic. The others are within 4 units in the last place of `f32` and `f64` if the functions that they use are
/// within one. This includes arguments for which the obvious formula cancels (near zero) or overflows; each formula
/// documents its method. Floats narrower than `f32` are computed in `f32` and rounded once. Functions of complex
/// numbers are not expanded. `result_accuracy` is ignored.
pub struct ExpandFunctions;

impl Pass for ExpandFunctions {
    fn name(&self) -> &'static str {
        "expand-functions"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let lacks = &cx.profile().lacks;
        if EXPANDABLE_FUNCTIONS.iter().all(|opcode| !lacks.contains(opcode)) {
            return Ok(());
        }
        let wanted = |graph: &xla_hlo::Computation, id: InstrId| match graph[id].op() {
            Op::Unary(Unary { op, .. }) => {
                let x = graph[graph[id].operand(0)].shape();
                lacks.contains(&op.opcode())
                    && formula(*op).is_some()
                    && is_static(graph, id)
                    && x.element_type().is_some_and(ElementType::is_float)
            }
            _ => false,
        };
        super::replace_each(self, module, cx, wanted, |at, id| expand(at, lacks, id))
    }
}

fn expand(at: &mut Inserter<'_>, lacks: &BTreeSet<Opcode>, id: InstrId) -> Result<InstrId> {
    let Op::Unary(Unary { op, .. }) = *at.graph()[id].op() else { return Ok(id) };
    let x = at.operands(id)[0];
    let narrow = at.element_type(x)?;
    let ty = super::computed_in(narrow);
    let x = at.convert(x, ty)?;
    let result = Formulas { at, lacks, ty, formula }.unary(op, x)?;
    // Booleans are not converted.
    if op == UnaryOp::IsFinite { Ok(result) } else { at.convert(result, narrow) }
}

/// Returns the formula of a function, if there is one. A formula may only use functions further down in this list.
fn formula(op: UnaryOp) -> Option<Formula> {
    use UnaryOp::*;
    Some(match op {
        Acosh => |f, x| f.acosh(x),
        Asinh => |f, x| f.asinh(x),
        Atanh => |f, x| f.atanh(x),
        Tanh => |f, x| f.tanh(x),
        Sinh => |f, x| f.sinh(x),
        Cosh => |f, x| f.cosh(x),
        Acos => |f, x| f.acos(x),
        Asin => |f, x| f.asin(x),
        Atan => |f, x| f.atan(x),
        Cbrt => |f, x| f.cbrt(x),
        Erf => |f, x| f.erf(x),
        ExponentialMinusOne => |f, x| f.expm1(x),
        LogPlusOne => |f, x| f.log1p(x),
        Logistic => |f, x| f.logistic(x),
        Rsqrt => |f, x| f.rsqrt(x),
        Tan => |f, x| f.tan(x),
        RoundNearestAfz => |f, x| f.round_afz(x),
        Ceil => |f, x| f.ceil(x),
        Floor => |f, x| f.floor(x),
        RoundNearestEven => |f, x| f.round_even(x),
        Sign => |f, x| f.sign(x),
        IsFinite => |f, x| f.is_finite(x),
        Abs | Cosine | CountLeadingZeros | Exponential | Imag | Log | Negate | Not | Popcnt | Real | Sine | Sqrt => {
            return None;
        }
    })
}

/// Exponentials and logarithms.
impl Formulas<'_, '_> {
    /// Emits `e^min(x,0) / (1 + e^-|x|)`, which does not overflow and keeps the precision of small results.
    fn logistic(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        let negative = self.at.unary(UnaryOp::Negate, magnitude)?;
        let e = self.unary(UnaryOp::Exponential, negative)?;
        let one = self.constant(x, 1.0)?;
        let numerator = self.when((x, CompareDirection::Lt, 0.0), e, one)?;
        let denominator = self.plus(e, 1.0)?;
        self.divide(numerator, denominator)
    }

    /// Emits `(u - 1) x / log u` with `u = e^x` rounded. The error of `u` cancels in the quotient (W. Kahan).
    fn expm1(&mut self, x: InstrId) -> Result<InstrId> {
        let u = self.unary(UnaryOp::Exponential, x)?;
        let less = self.plus(u, -1.0)?;
        let log = self.unary(UnaryOp::Log, u)?;
        let ratio = self.divide(x, log)?;
        let y = self.multiply(less, ratio)?;
        // The ratio is undefined where `exp(x) - 1` rounds to -1 or 0, or `exp(x)` overflows.
        let y = self.when((less, CompareDirection::Eq, -1.0), less, y)?;
        let y = self.when((u, CompareDirection::Eq, f64::INFINITY), u, y)?;
        self.when((less, CompareDirection::Eq, 0.0), x, y)
    }

    /// Emits `log u x / (u - 1)` with `u = 1 + x` rounded. The quotient corrects the rounding error of `u` (W. Kahan).
    fn log1p(&mut self, x: InstrId) -> Result<InstrId> {
        let u = self.plus(x, 1.0)?;
        let less = self.plus(u, -1.0)?;
        let log = self.unary(UnaryOp::Log, u)?;
        let ratio = self.divide(x, less)?;
        let y = self.multiply(log, ratio)?;
        let y = self.when((x, CompareDirection::Eq, f64::INFINITY), x, y)?;
        self.when((less, CompareDirection::Eq, 0.0), x, y)
    }

    /// Emits one Newton step from `e^(log|x| / 3)`, which squares the relative error.
    fn cbrt(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        let log = self.unary(UnaryOp::Log, magnitude)?;
        let third = self.times(log, 1.0 / 3.0)?;
        let y = self.unary(UnaryOp::Exponential, third)?;
        let square = self.multiply(y, y)?;
        let other = self.divide(magnitude, square)?;
        let error = self.subtract(y, other)?;
        let error = self.times(error, 1.0 / 3.0)?;
        let y = self.subtract(y, error)?;
        let y = self.odd(x, y)?;
        let y = self.when((magnitude, CompareDirection::Eq, f64::INFINITY), x, y)?;
        self.when((x, CompareDirection::Eq, 0.0), x, y)
    }

    fn rsqrt(&mut self, x: InstrId) -> Result<InstrId> {
        let root = self.unary(UnaryOp::Sqrt, x)?;
        let one = self.constant(x, 1.0)?;
        self.divide(one, root)
    }

    fn erf(&mut self, x: InstrId) -> Result<InstrId> {
        erf::write(self, x)
    }
}

/// Hyperbolic functions and their inverses.
impl Formulas<'_, '_> {
    /// Emits `-m / (m + 2)` with `m = e^(-2|x|) - 1`, odd.
    fn tanh(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        let twice = self.times(magnitude, -2.0)?;
        let m = self.unary(UnaryOp::ExponentialMinusOne, twice)?;
        let numerator = self.at.unary(UnaryOp::Negate, m)?;
        let denominator = self.plus(m, 2.0)?;
        let y = self.divide(numerator, denominator)?;
        self.odd(x, y)
    }

    /// Emits `(m + m / (m + 1)) / 2` with `m = e^|x| - 1`, odd. Large arguments use `(e^(|x|/2) / 2) e^(|x|/2)`, which
    /// overflows only if the result does.
    fn sinh(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        let m = self.unary(UnaryOp::ExponentialMinusOne, magnitude)?;
        let more = self.plus(m, 1.0)?;
        let ratio = self.divide(m, more)?;
        let sum = self.add(m, ratio)?;
        let near = self.times(sum, 0.5)?;
        let half = self.exp_of_half(magnitude)?;
        let far = self.times(half, 0.5)?;
        let far = self.multiply(far, half)?;
        let y = self.when((magnitude, CompareDirection::Gt, 22.0), far, near)?;
        self.odd(x, y)
    }

    /// Emits `(h / 2) h + (1 / (2 h)) / h` with `h = e^(|x|/2)`, which overflows only if the result does.
    fn cosh(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        let half = self.exp_of_half(magnitude)?;
        let great = self.times(half, 0.5)?;
        let great = self.multiply(great, half)?;
        let small = self.constant(x, 0.5)?;
        let small = self.divide(small, half)?;
        let small = self.divide(small, half)?;
        self.add(great, small)
    }

    fn exp_of_half(&mut self, x: InstrId) -> Result<InstrId> {
        let half = self.times(x, 0.5)?;
        self.unary(UnaryOp::Exponential, half)
    }

    /// Emits `log1p(a + a^2 / (1 + sqrt(a^2 + 1)))` with `a = |x|`, odd; `log a + log 2` for large arguments.
    fn asinh(&mut self, x: InstrId) -> Result<InstrId> {
        let a = self.abs(x)?;
        let square = self.multiply(a, a)?;
        let root = self.plus(square, 1.0)?;
        let root = self.unary(UnaryOp::Sqrt, root)?;
        let root = self.plus(root, 1.0)?;
        let more = self.divide(square, root)?;
        let sum = self.add(a, more)?;
        let near = self.unary(UnaryOp::LogPlusOne, sum)?;
        let y = self.unless_far(a, near)?;
        self.odd(x, y)
    }

    /// Emits `log1p(t + sqrt(t (t + 2)))` with `t = x - 1`; `log x + log 2` for large arguments.
    fn acosh(&mut self, x: InstrId) -> Result<InstrId> {
        let t = self.plus(x, -1.0)?;
        let more = self.plus(t, 2.0)?;
        let product = self.multiply(t, more)?;
        let root = self.unary(UnaryOp::Sqrt, product)?;
        let sum = self.add(t, root)?;
        let near = self.unary(UnaryOp::LogPlusOne, sum)?;
        let y = self.unless_far(x, near)?;
        let nan = self.constant(x, f64::NAN)?;
        self.when((x, CompareDirection::Lt, 1.0), nan, y)
    }

    /// Selects `near`, or `log x + log 2` if 1 is negligible compared with the square of `x`.
    fn unless_far(&mut self, x: InstrId, near: InstrId) -> Result<InstrId> {
        let log = self.unary(UnaryOp::Log, x)?;
        let far = self.plus(log, std::f64::consts::LN_2)?;
        let border = self.choose(f64::from(1 << 13), f64::from(1 << 28));
        self.when((x, CompareDirection::Gt, border), far, near)
    }

    /// Emits `log1p(2a / (1 - a)) / 2` with `a = |x|`, odd.
    fn atanh(&mut self, x: InstrId) -> Result<InstrId> {
        let a = self.abs(x)?;
        let twice = self.times(a, 2.0)?;
        let one = self.constant(x, 1.0)?;
        let less = self.subtract(one, a)?;
        let ratio = self.divide(twice, less)?;
        let log = self.unary(UnaryOp::LogPlusOne, ratio)?;
        let y = self.times(log, 0.5)?;
        self.odd(x, y)
    }
}

/// Trigonometric functions and their inverses.
impl Formulas<'_, '_> {
    fn tan(&mut self, x: InstrId) -> Result<InstrId> {
        let (sine, cosine) = (self.unary(UnaryOp::Sine, x)?, self.unary(UnaryOp::Cosine, x)?);
        self.divide(sine, cosine)
    }

    fn atan(&mut self, x: InstrId) -> Result<InstrId> {
        let one = self.constant(x, 1.0)?;
        self.at.binary(BinaryOp::Atan2, x, one)
    }

    /// Emits `2 atan2(x, 1 + sqrt((1 - x) (1 + x)))`.
    fn asin(&mut self, x: InstrId) -> Result<InstrId> {
        let (less, more) = self.around_one(x)?;
        let product = self.multiply(less, more)?;
        let root = self.unary(UnaryOp::Sqrt, product)?;
        let denominator = self.plus(root, 1.0)?;
        let half = self.at.binary(BinaryOp::Atan2, x, denominator)?;
        self.times(half, 2.0)
    }

    /// Emits `2 atan2(sqrt(1 - x), sqrt(1 + x))`.
    fn acos(&mut self, x: InstrId) -> Result<InstrId> {
        let (less, more) = self.around_one(x)?;
        let (less, more) = (self.unary(UnaryOp::Sqrt, less)?, self.unary(UnaryOp::Sqrt, more)?);
        let half = self.at.binary(BinaryOp::Atan2, less, more)?;
        self.times(half, 2.0)
    }

    /// Emits `1 - x` and `1 + x`.
    fn around_one(&mut self, x: InstrId) -> Result<(InstrId, InstrId)> {
        let one = self.constant(x, 1.0)?;
        Ok((self.subtract(one, x)?, self.add(one, x)?))
    }
}

/// Roundings and predicates, all exact.
impl Formulas<'_, '_> {
    /// Emits 1 or -1, or the argument itself if it is zero or NaN.
    fn sign(&mut self, x: InstrId) -> Result<InstrId> {
        let (one, minus_one) = (self.constant(x, 1.0)?, self.constant(x, -1.0)?);
        let y = self.when((x, CompareDirection::Lt, 0.0), minus_one, x)?;
        self.when((x, CompareDirection::Gt, 0.0), one, y)
    }

    fn is_finite(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        self.compare(magnitude, CompareDirection::Lt, f64::INFINITY)
    }

    /// Emits `(|x| + m) - m`, odd, with the least `m` such that all floats from `m` on are integers. Such floats are
    /// returned unchanged.
    fn round_even(&mut self, x: InstrId) -> Result<InstrId> {
        let integers = self.choose(f64::from(1 << 23), (1u64 << 52) as f64);
        let magnitude = self.abs(x)?;
        let sum = self.plus(magnitude, integers)?;
        let rounded = self.plus(sum, -integers)?;
        let rounded = self.odd(x, rounded)?;
        self.when((magnitude, CompareDirection::Lt, integers), rounded, x)
    }

    /// Emits the nearest integer, or one less if that is greater than `x`.
    fn floor(&mut self, x: InstrId) -> Result<InstrId> {
        let nearest = self.unary(UnaryOp::RoundNearestEven, x)?;
        let below = self.plus(nearest, -1.0)?;
        let is_above = self.at.compare(CompareDirection::Gt, nearest, x)?;
        self.at.select(is_above, below, nearest)
    }

    fn ceil(&mut self, x: InstrId) -> Result<InstrId> {
        let negated = self.at.unary(UnaryOp::Negate, x)?;
        let floor = self.unary(UnaryOp::Floor, negated)?;
        self.at.unary(UnaryOp::Negate, floor)
    }

    /// Emits the integer below the magnitude, or the one above for fractions from 0.5 on; odd.
    fn round_afz(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.abs(x)?;
        let below = self.unary(UnaryOp::Floor, magnitude)?;
        let rest = self.subtract(magnitude, below)?;
        let above = self.plus(below, 1.0)?;
        let y = self.when((rest, CompareDirection::Ge, 0.5), above, below)?;
        let y = self.odd(x, y)?;
        // The fraction of infinity would be NaN.
        self.when((magnitude, CompareDirection::Eq, f64::INFINITY), x, y)
    }
}
