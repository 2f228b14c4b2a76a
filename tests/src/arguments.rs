//! Arguments of programs that state none, and the tolerance of their results.

use xla_hlo::{ElementKind, Literal, Scalar, Shape};

/// Tolerance of results, absolute and relative to the evaluator's result.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// Returns a value for an array parameter: multiples of 0.25 between -4 and 4, whose sums are exact, or integers. The
/// value depends on `salt`.
///
/// # Panics
///
/// Panics if the shape is not an array or too large.
pub fn input(shape: &Shape, salt: usize) -> Literal {
    let shape = shape.as_array().expect("parameters are arrays");
    let ty = shape.element_type();
    let value = |i: usize| ((i * 7919 + salt * 104_729) % 1009 % 33) as f64 / 4.0 - 4.0;
    let element = |i: usize| match ty.kind() {
        ElementKind::Pred => Scalar::Pred(value(i) > 0.0),
        ElementKind::Signed => Scalar::Signed((value(i) * 4.0) as i64),
        ElementKind::Unsigned => Scalar::Unsigned((value(i).abs() * 4.0) as u64),
        ElementKind::Float => Scalar::Float(value(i)),
        ElementKind::Complex => Scalar::Complex(value(i), value(i + 1)),
    };
    Literal::from_fn(shape, element).expect("a small array")
}
