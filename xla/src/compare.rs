//! Comparison of values with expected ones, element by element.

use xla_hlo::{Literal, Scalar, multi_index};

/// Tolerance of floats: `|actual - expected| <= atol + rtol * |expected|`. NaN equals NaN, and infinities of the same
/// sign are equal. The parts of complex numbers are compared separately, with the tolerance for the absolute value.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Whether 0 and -0 differ.
    pub signed_zero: bool,
}

impl Tolerance {
    /// Returns `None` if the arrays agree, otherwise a description of the largest difference. They must have the same
    /// element type and dimensions.
    pub fn difference(&self, expected: &Literal, actual: &Literal) -> Option<String> {
        if expected == actual {
            return None;
        }
        let ty = expected.array_shape().element_type();
        let exact = !ty.is_float() && !ty.is_complex();
        let count = expected.array_shape().element_count();
        let (mut bad, mut worst, mut worst_at) = (0, 0.0, 0);
        for i in 0..count {
            if expected.element_bytes(i) == actual.element_bytes(i) {
                continue;
            }
            let excess = self.excess(expected.get(i), actual.get(i));
            if excess > 1.0 {
                bad += 1;
                // For integers, the first difference is reported.
                if excess > worst {
                    (worst, worst_at) = (excess, i);
                }
            }
        }
        if bad == 0 {
            return None;
        }
        let place: Vec<String> =
            multi_index(expected.array_shape().dims(), worst_at).iter().map(usize::to_string).collect();
        let (found, wanted) = (scalar(actual.get(worst_at)), scalar(expected.get(worst_at)));
        let at = format!("at ({}): {found} expected {wanted}", place.join(", "));
        Some(match exact {
            true => format!("{bad} of {count} differ, first {at}"),
            false => format!("{bad} of {count} beyond rtol {:?} atol {:?}, worst {at}", self.rtol, self.atol),
        })
    }

    /// Returns the difference of two elements in multiples of the tolerance. Values above 1 exceed it; infinite if one
    /// element is not finite.
    fn excess(&self, expected: Scalar, actual: Scalar) -> f64 {
        match (expected, actual) {
            (Scalar::Float(e), Scalar::Float(a)) => self.real_excess(e, a, self.scale(e.abs())),
            (Scalar::Complex(e, ei), Scalar::Complex(a, ai)) => {
                let scale = self.scale(e.hypot(ei));
                self.real_excess(e, a, scale).max(self.real_excess(ei, ai, scale))
            }
            (expected, actual) if expected == actual => 0.0,
            _ => f64::INFINITY,
        }
    }

    fn scale(&self, size: f64) -> f64 {
        self.atol + if size.is_finite() { self.rtol * size } else { 0.0 }
    }

    fn real_excess(&self, e: f64, a: f64, scale: f64) -> f64 {
        if e == 0.0 && a == 0.0 {
            let differ = self.signed_zero && e.is_sign_negative() != a.is_sign_negative();
            return if differ { f64::INFINITY } else { 0.0 };
        }
        if e == a || (e.is_nan() && a.is_nan()) {
            return 0.0;
        }
        let gap = (a - e).abs();
        if e.is_finite() && a.is_finite() && scale > 0.0 { gap / scale } else { f64::INFINITY }
    }
}

/// Formats a number as the shortest text that reads back to it.
pub fn scalar(value: Scalar) -> String {
    let float = |v: f64| {
        // Every float of at most 32 bits is an `f32`, and shorter to write as one.
        let text = if f64::from(v as f32) == v { format!("{:?}", v as f32) } else { format!("{v:?}") };
        text.strip_suffix(".0").map_or(text.clone(), str::to_string)
    };
    match value {
        Scalar::Pred(v) => v.to_string(),
        Scalar::Signed(v) => v.to_string(),
        Scalar::Unsigned(v) => v.to_string(),
        Scalar::Float(v) => float(v),
        Scalar::Complex(re, im) => format!("({}, {})", float(re), float(im)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_hlo::{ArrayShape, ElementType};

    const TOLERANCE: Tolerance = Tolerance { rtol: 0.01, atol: 0.001, signed_zero: false };

    fn difference(tolerance: &Tolerance, expected: &[f64], actual: &[f64]) -> Option<String> {
        let literal = |values: &[f64]| {
            let shape = ArrayShape::new(ElementType::F32, [1, values.len()]);
            Literal::from_fn(&shape, |i| Scalar::Float(values[i])).unwrap()
        };
        tolerance.difference(&literal(expected), &literal(actual))
    }

    #[test]
    fn floats_may_differ_by_the_tolerance() {
        assert_eq!(difference(&TOLERANCE, &[1.0, 100.0, 0.0], &[1.01, 99.0, 0.0009]), None);
        let worst = difference(&TOLERANCE, &[1.0, 2.0, 3.0], &[1.1, 3.0, 3.0]).unwrap();
        assert_eq!(worst, "2 of 3 beyond rtol 0.01 atol 0.001, worst at (0, 1): 3 expected 2");
    }

    #[test]
    fn what_is_not_finite_must_be_the_same() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!(difference(&TOLERANCE, &[inf, -inf, nan], &[inf, -inf, -nan]), None);
        for (e, a) in [(inf, -inf), (inf, 1e30), (1e30, inf), (nan, 1.0), (1.0, nan)] {
            assert!(difference(&TOLERANCE, &[e], &[a]).is_some(), "{e} {a}");
        }
    }

    #[test]
    fn the_sign_of_zero_counts_when_asked_for() {
        assert_eq!(difference(&TOLERANCE, &[0.0], &[-0.0]), None);
        let strict = Tolerance { signed_zero: true, ..TOLERANCE };
        assert!(difference(&strict, &[0.0, 1.0], &[-0.0, 1.0]).unwrap().ends_with("at (0, 0): -0 expected 0"));
    }

    #[test]
    fn complex_parts_share_a_tolerance() {
        let literal = |re, im| Literal::scalar(ElementType::C64, Scalar::Complex(re, im));
        assert_eq!(TOLERANCE.difference(&literal(100.0, 0.0), &literal(100.0, 0.9)), None);
        assert!(TOLERANCE.difference(&literal(100.0, 0.0), &literal(100.0, 1.1)).is_some());
    }

    #[test]
    fn integers_must_be_equal() {
        let literal = |v| Literal::scalar(ElementType::S32, Scalar::Signed(v));
        assert_eq!(TOLERANCE.difference(&literal(1000), &literal(1000)), None);
        let message = TOLERANCE.difference(&literal(1000), &literal(1001)).unwrap();
        assert_eq!(message, "1 of 1 differ, first at (): 1001 expected 1000");
    }
}
