//! Comparison of the results of two modules, on generated inputs.

use xla_hlo::eval::Evaluator;
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Module, Result, Scalar, Shape};

/// Maximum number of instructions that a program may run.
const STEPS: u64 = 2_000_000;

/// Returns the largest difference of the results of two modules, in units of the tolerance of their element types;
/// `None` if neither can be run, since they call library functions or need several devices.
///
/// Returns an error if only one of them can be run.
pub fn difference(first: &Module, second: &Module) -> Result<Option<f64>> {
    let [first, second] = [first, second].map(run);
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(Some(distance(&first, &second))),
        (Err(Error::Unimplemented(_)), Err(Error::Unimplemented(_))) => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

fn run(module: &Module) -> Result<Literal> {
    let entry = module.entry();
    let inputs = entry.parameters().iter().map(|&id| input(entry[id].shape())).collect::<Result<Vec<_>>>()?;
    Evaluator::new(module).with_step_limit(STEPS).call(module.entry_id(), inputs)
}

/// Returns floats between 0 and 1, or small integers.
fn input(shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Array(array) => {
            let ty = array.element_type();
            let element = |i: usize| number(ty, (i * 37 + 11) % 64);
            Literal::from_fn(array, element)
        }
        Shape::Tuple(elements) => Ok(Literal::tuple(elements.iter().map(input).collect::<Result<_>>()?)),
        _ => Err(Error::unimplemented("a parameter that is no array")),
    }
}

fn number(ty: ElementType, i: usize) -> Scalar {
    let fraction = (i as f64 + 1.0) / 66.0;
    if ty.is_float() {
        Scalar::Float(fraction)
    } else if ty.is_complex() {
        Scalar::Complex(fraction, 0.9 - fraction)
    } else {
        Scalar::from_i64(ty, (i % 4) as i64)
    }
}

fn distance(first: &Literal, second: &Literal) -> f64 {
    if let Shape::Tuple(_) = first.shape() {
        let pairs = first.elements().iter().zip(second.elements());
        return pairs.map(|(first, second)| distance(first, second)).fold(0.0, f64::max);
    }
    let Some(array) = first.shape().as_array() else { return 0.0 };
    let allowed = allowed(array);
    let of = |i| match (first.get(i), second.get(i)) {
        (Scalar::Float(a), Scalar::Float(b)) => apart(a, b) / allowed,
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
            // The error of both parts is relative to the greater one.
            let size = a.abs().max(b.abs()).max(1.0);
            (apart(a / size, c / size)).max(apart(b / size, d / size)) / allowed
        }
        (a, b) if a == b => 0.0,
        _ => f64::INFINITY,
    };
    (0..array.element_count()).map(of).fold(0.0, f64::max)
}

/// Returns the difference of two numbers, relative if they are large.
fn apart(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let apart = (a - b).abs() / a.abs().max(1.0);
    if apart.is_finite() { apart } else { f64::INFINITY }
}

/// Returns the tolerance: a few dozen units in the last place.
fn allowed(array: &ArrayShape) -> f64 {
    match array.element_type() {
        ElementType::F64 | ElementType::C128 => 1e-12,
        ElementType::F32 | ElementType::C64 => 1e-5,
        ElementType::F16 => 1e-2,
        _ => 5e-2,
    }
}
