//! Agreement of candidates: whether their results are equal within rounding error.

use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar};

use crate::program::commands::Choice;
use crate::program::library_call::LibraryCall;
use crate::program::library_call::convolution::{Convolution, ConvolutionKind};
use crate::program::library_call::matmul::Precision;

/// Maximum number of elements that are compared; larger arrays are sampled at even steps.
const LOOKED_AT: usize = 1 << 18;

/// Results of one candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results(Vec<Numbers>);

/// Sampled elements of one array, and the tolerance as a fraction of the largest magnitude.
#[derive(Clone, Debug, PartialEq)]
struct Numbers {
    values: Vec<f64>,
    tolerance: f64,
}

/// Properties of a result that bound the distance between two correct computations of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    /// Number of products that are summed for one element of the result.
    terms: usize,
    /// Precision of the factors of these products.
    precision: Precision,
}

impl Rounding {
    /// Returns the rounding of a library call.
    pub fn of_call(call: &LibraryCall) -> Rounding {
        let (terms, precision) = match call {
            LibraryCall::Matmul(matmul) => (matmul.k, matmul.precision),
            LibraryCall::Convolution(convolution) => (terms_of(convolution), convolution.precision),
            LibraryCall::Fourier(fourier) => (fourier.lengths.iter().product(), Precision::Exact),
        };
        Rounding { terms, precision }
    }

    /// Returns the rounding of a choice between kernels of our own.
    pub fn of_choice(choice: &Choice) -> Rounding {
        Rounding { terms: choice.terms, precision: choice.precision }
    }
}

impl Results {
    /// Returns results that agree only with results of the same number.
    #[cfg(test)]
    pub fn of(number: f64) -> Results {
        Results(vec![Numbers { values: vec![1.0, number], tolerance: 1e-3 }])
    }

    /// Adds an array of the result.
    pub fn add(&mut self, rounding: Rounding, element: ElementType, bytes: Vec<u8>) -> Result<()> {
        let count = bytes.len() / element.byte_width().max(1);
        let literal = Literal::from_bytes(&ArrayShape::new(element, [count]), bytes)?;
        // An odd step visits all columns of an array whose row length is a power of two.
        let step = if count > LOOKED_AT { (count / LOOKED_AT) | 1 } else { 1 };
        let mut values = Vec::with_capacity(count / step + 1);
        for number in (0..count).step_by(step).chain(count.checked_sub(1)) {
            match literal.get(number) {
                Scalar::Pred(value) => values.push(f64::from(u8::from(value))),
                Scalar::Signed(value) => values.push(value as f64),
                Scalar::Unsigned(value) => values.push(value as f64),
                Scalar::Float(value) => values.push(value),
                Scalar::Complex(real, imaginary) => values.extend([real, imaginary]),
            }
        }
        self.0.push(Numbers { values, tolerance: tolerance(rounding, element) });
        Ok(())
    }

    /// Whether both results are equal up to rounding.
    pub fn agree(&self, other: &Results) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.into_iter().all(|(one, other)| one.agree(other))
    }
}

impl Numbers {
    fn agree(&self, other: &Numbers) -> bool {
        let greatest =
            self.values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let near = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= self.tolerance * greatest;
        self.values.len() == other.values.len() && self.values.iter().zip(&other.values).all(|(a, b)| near(*a, *b))
    }
}

/// Marks the results that agree with the majority. Between two groups of equal size, the one with the earliest member
/// wins.
pub(crate) fn majority(all: &[Results]) -> Vec<bool> {
    let agreeing = |results: &&Results| all.iter().filter(|other| results.agree(other)).count();
    // `max_by_key` returns the last of several maxima, so iterate in reverse.
    match all.iter().rev().max_by_key(agreeing) {
        Some(leader) => all.iter().map(|other| leader.agree(other)).collect(),
        None => Vec::new(),
    }
}

/// Returns the allowed distance between two correct results, as a fraction of the largest magnitude. Each computation
/// rounds the result once, possibly rounds each factor, and sums `terms` products in its own order.
fn tolerance(Rounding { terms, precision }: Rounding, element: ElementType) -> f64 {
    let single = f64::from(f32::EPSILON);
    let (result, sum) = match element {
        ElementType::F64 | ElementType::C128 => (f64::EPSILON, f64::EPSILON),
        ElementType::F32 | ElementType::C64 => (single, single),
        ElementType::F16 => (2f64.powi(-10), single),
        ElementType::BF16 => (2f64.powi(-7), single),
        // Floats of at most eight bits.
        element if element.is_float() => (0.25, single),
        // Integers are exact.
        _ => return 0.0,
    };
    let factor = match precision {
        Precision::Exact => 0.0,
        Precision::Tf32 => 2f64.powi(-10),
    };
    4.0 * result + 16.0 * factor + 16.0 * sum * (terms as f64).sqrt()
}

/// Returns the number of products that are summed for one element of the result.
fn terms_of(convolution: &Convolution) -> usize {
    let groups = convolution.groups.max(1);
    let window: usize = convolution.spatial.iter().map(|dimension| dimension.filter).product();
    let places: usize = convolution.spatial.iter().map(|dimension| dimension.output).product();
    match convolution.kind {
        ConvolutionKind::Forward => window * convolution.input_channels / groups,
        ConvolutionKind::BackwardInput => window * convolution.output_channels / groups,
        ConvolutionKind::BackwardFilter => places * convolution.batch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::library_call::matmul::Matmul;

    fn call(k: usize, element: ElementType) -> Rounding {
        Rounding::of_call(&LibraryCall::Matmul(Matmul::dense(1, [8, k, 8], [element; 3])))
    }

    #[test]
    fn the_majority_is_right_and_the_first_where_there_is_none() {
        let of = |numbers: &[f64]| majority(&numbers.iter().map(|number| Results::of(*number)).collect::<Vec<_>>());
        assert_eq!(of(&[1.0, 1.0, 2.0]), [true, true, false]);
        assert_eq!(of(&[2.0, 1.0, 1.0]), [false, true, true]);
        assert_eq!(of(&[1.0, 2.0]), [true, false]);
        assert_eq!(of(&[1.0, 2.0, 1.0, 2.0]), [true, false, true, false]);
        assert_eq!(of(&[f64::NAN, f64::NAN, 2.0]), [true, true, false]);
        assert_eq!(of(&[]), [false; 0]);
    }

    #[test]
    fn rounding_is_no_disagreement() {
        let f32s = |scale: f32| {
            let mut results = Results::default();
            let bytes = (0..1000).flat_map(|i| (((i * 7 % 13) as f32 - 6.0) * scale).to_le_bytes()).collect();
            results.add(call(4096, ElementType::F32), ElementType::F32, bytes).unwrap();
            results
        };
        assert!(f32s(1.0).agree(&f32s(1.0 + 1e-5)));
        assert!(!f32s(1.0).agree(&f32s(1.01)));
        assert!(!f32s(1.0).agree(&f32s(-1.0)));
        let s32s = |add: i32| {
            let mut results = Results::default();
            let bytes = (0..1000).flat_map(|i: i32| (i * 1000 + add).to_le_bytes()).collect();
            results.add(call(64, ElementType::S8), ElementType::S32, bytes).unwrap();
            results
        };
        assert!(s32s(0).agree(&s32s(0)) && !s32s(0).agree(&s32s(1)));
    }

    #[test]
    fn a_wrong_tile_of_a_large_array_is_seen() {
        let (side, element) = (2048, ElementType::BF16);
        let array = |wrong: usize| {
            let number = |i: usize| if i % side < wrong && i / side < 64 { 3.0 } else { 1.0f32 };
            let bytes = (0..side * side).flat_map(|i| ((number(i).to_bits() >> 16) as u16).to_le_bytes()).collect();
            let mut results = Results::default();
            results.add(call(side, element), element, bytes).unwrap();
            results
        };
        assert!(array(0).agree(&array(0)));
        assert!(!array(0).agree(&array(64)));
    }
}
