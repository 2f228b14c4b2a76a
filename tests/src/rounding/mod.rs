//! Running error analysis: bounds on the difference of two correct implementations of a program.
//!
//! The program runs on its arguments. Each float array has a bound on its rounding error, element by element, to first
//! order: one rounding of its type for each operation, and one for each summed element (Higham, "Accuracy and Stability
//! of Numerical Algorithms", 2002, chapter 3). So the tolerance of a result follows from element types, numbers of
//! summed elements and values; nothing is chosen for a particular program.

mod elementwise;
mod interpret;
mod movement;
mod sums;

use xla::compare::Tolerance;
use xla::{Error, Result};
use xla_hlo::{ArrayShape, ElementType, Literal, Module, Scalar, Shape};

use crate::generate::{epsilon, least};

/// Number of implementations that may each deviate by the bound.
pub const SIDES: f64 = 2.0;

/// Array with a bound on the error of each element.
#[derive(Clone, Debug)]
struct Measured {
    value: Literal,
    /// `f64` array of equal dimensions; `None` if all implementations return equal values.
    error: Option<Literal>,
}

/// Value of the program.
#[derive(Clone, Debug)]
enum Value {
    Array(Box<Measured>),
    Tuple(Vec<Value>),
}

/// Result of a program, with the possible difference of two implementations.
#[derive(Clone, Debug)]
pub struct MeasuredResult {
    /// Value that the evaluator returns.
    pub value: Literal,
    /// Tightest relative and absolute tolerance that admits the bounds of all elements.
    pub tolerance: Tolerance,
    /// Greatest difference of an element.
    pub noise: f64,
}

/// Measures each array of the result of a verified module.
///
/// Returns an error that names an operation that the analysis does not support, or a result that rounding may change
/// completely.
pub fn measure(module: &Module, arguments: &[Literal]) -> Result<Vec<MeasuredResult>> {
    let arguments = arguments.iter().map(Value::exact).collect();
    let result = interpret::Interpreter::new(module).call(module.entry_id(), arguments)?;
    let mut leaves = Vec::new();
    result.collect(&mut leaves);
    leaves.into_iter().enumerate().map(|(i, leaf)| leaf.result(i)).collect()
}

impl Value {
    fn of(array: Measured) -> Value {
        Value::Array(Box::new(array))
    }

    fn exact(value: &Literal) -> Value {
        match value.shape() {
            Shape::Tuple(_) => Value::Tuple(value.elements().iter().map(Value::exact).collect()),
            _ => Value::of(Measured::exact(value.clone())),
        }
    }

    fn array(&self) -> Result<&Measured> {
        match self {
            Value::Array(array) => Ok(array),
            Value::Tuple(_) => Err(Error::internal("error analysis: a tuple is an operand of an operation on arrays")),
        }
    }

    fn collect(self, leaves: &mut Vec<Measured>) {
        match self {
            Value::Array(array) => leaves.push(*array),
            Value::Tuple(elements) => elements.into_iter().for_each(|element| element.collect(leaves)),
        }
    }
}

impl Measured {
    fn exact(value: Literal) -> Measured {
        Measured { value, error: None }
    }

    /// Creates an array whose element `i` has the error `error(i)`.
    fn new(value: Literal, error: impl Fn(usize) -> f64) -> Result<Measured> {
        let count = value.array_shape().element_count();
        let bound = |i| match (error(i), number(&value, i)) {
            // A non-finite result must be equal in all implementations.
            (error, number) if error.is_nan() && !number.is_finite() => 0.0,
            (error, _) if error.is_nan() => f64::INFINITY,
            (error, _) => error,
        };
        let errors: Vec<f64> = (0..count).map(bound).collect();
        let is_exact = errors.iter().all(|&error| error == 0.0);
        let error = (!is_exact).then(|| literal(value.array_shape().dims(), |i| errors[i])).transpose()?;
        Ok(Measured { value, error })
    }

    fn ty(&self) -> ElementType {
        self.value.array_shape().element_type()
    }

    fn dims(&self) -> &[usize] {
        self.value.array_shape().dims()
    }

    fn count(&self) -> usize {
        self.value.array_shape().element_count()
    }

    fn number(&self, i: usize) -> f64 {
        number(&self.value, i)
    }

    fn error(&self, i: usize) -> f64 {
        self.error.as_ref().map_or(0.0, |error| number(error, i))
    }

    /// Returns the errors as an array of `f64`.
    fn errors(&self) -> Result<Literal> {
        self.error.clone().map_or_else(|| literal(self.dims(), |_| 0.0), Ok)
    }

    /// Returns the magnitudes of the elements as an array of `f64`.
    fn sizes(&self) -> Result<Literal> {
        literal(self.dims(), |i| self.number(i).abs())
    }

    fn result(self, i: usize) -> Result<MeasuredResult> {
        let all = (0..self.count()).map(|i| (self.number(i).abs(), SIDES * self.error(i)));
        let pairs: Vec<(f64, f64)> = all.filter(|(size, _)| size.is_finite()).collect();
        let noise = pairs.iter().fold(0.0, |noise: f64, pair| noise.max(pair.1));
        if noise.is_infinite() || (noise > 0.0 && !self.ty().is_float()) {
            return Err(Error::invalid_argument(format!("rounding decides result {i}; it takes other arguments")));
        }
        let (rtol, atol) = tightest(&pairs);
        let signed_zero = !self.ty().is_float();
        Ok(MeasuredResult { value: self.value, tolerance: Tolerance { rtol, atol, signed_zero }, noise })
    }
}

/// Returns the relative and absolute tolerance that admit each error at its magnitude, and are smallest in the
/// geometric mean.
fn tightest(pairs: &[(f64, f64)]) -> (f64, f64) {
    let noisy = pairs.iter().filter(|(size, error)| *error > 0.0 && *size > 0.0);
    let mut ratios: Vec<f64> = noisy.map(|(size, error)| error / size).collect();
    ratios.sort_by(f64::total_cmp);
    let quantiles = (0..=8).filter_map(|part| ratios.get(part * ratios.len().saturating_sub(1) / 8));
    let candidates = std::iter::once(0.0).chain(quantiles.copied());
    let fitted = candidates.map(|rtol| {
        let atol = pairs.iter().fold(0.0, |atol: f64, (size, error)| atol.max(error - rtol * size));
        let admitted = |&(size, _): &(f64, f64)| (atol + rtol * size).max(f64::MIN_POSITIVE).ln();
        (pairs.iter().map(admitted).sum::<f64>(), rtol, atol)
    });
    let best = fitted.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or((0.0, 0.0), |(_, rtol, atol)| (rtol, atol))
}

/// Returns the error of one rounding to a value of magnitude `size`; zero for types that are not floats.
fn rounding(ty: ElementType, size: f64) -> f64 {
    if !ty.is_float() {
        return 0.0;
    }
    // If subnormal numbers are flushed, the error is up to the least normal number.
    let flushed = match ty {
        ElementType::F32 | ElementType::BF16 => f64::from(f32::MIN_POSITIVE),
        ElementType::F64 => f64::MIN_POSITIVE,
        _ => least(ty),
    };
    // Passes may replace an operation by two of its type; narrow types are computed in a wider one.
    let unit = if ty.bit_width() < 32 { 0.51 * epsilon(ty) } else { epsilon(ty) };
    (unit * size).max(flushed)
}

/// Returns the error of a greatest value between `low` and `high`, which are rounded to `f64`.
fn extreme(result: f64, low: f64, high: f64) -> f64 {
    if low == high { 0.0 } else { (result - low).max(high - result) + f64::EPSILON * result.abs() }
}

/// Returns the element type in which functions and sums of products of a type are computed.
fn wide(ty: ElementType) -> ElementType {
    if ty.is_float() && ty.bit_width() < 32 { ElementType::F32 } else { ty }
}

/// Returns element `i` as a number; the magnitude for complex types.
pub fn number(literal: &Literal, i: usize) -> f64 {
    match literal.get(i) {
        Scalar::Pred(value) => f64::from(u8::from(value)),
        Scalar::Signed(value) => value as f64,
        Scalar::Unsigned(value) => value as f64,
        Scalar::Float(value) => value,
        Scalar::Complex(re, im) => re.hypot(im),
    }
}

/// Creates an array of `f64`.
fn literal(dims: &[usize], mut element: impl FnMut(usize) -> f64) -> Result<Literal> {
    Literal::from_fn(&ArrayShape::new(ElementType::F64, dims), |i| Scalar::Float(element(i)))
}

/// Returns the error for an operation that the analysis does not support.
fn unknown(operation: impl std::fmt::Display) -> Error {
    Error::unimplemented(format!("error analysis of {operation}"))
}
