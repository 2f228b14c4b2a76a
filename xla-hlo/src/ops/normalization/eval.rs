//! Evaluator of the normalization family, which computes in `f64` and rounds results once.

use super::*;
use crate::ops::checks;
use crate::{ArrayShape, Scalar};

pub(super) fn batch_norm(op: &BatchNorm, operands: &[Literal], shape: &Shape) -> Result<Literal> {
    let x = Features::new(operands, 0, op.feature_index)?;
    let vector = |i: usize| operands.get(i).map(numbers).ok_or_else(checks::missing_operand);
    let epsilon = f64::from(op.epsilon.get());
    match op.kind {
        BatchNormKind::Training => {
            let mean = x.means(|_, v| v);
            let variance = x.means(|f, v| (v - mean[f]) * (v - mean[f]));
            let normalised = x.normalised(&vector(1)?, &vector(2)?, &mean, &variance, epsilon);
            results(shape, [normalised, mean, variance])
        }
        BatchNormKind::Inference => {
            let normalised = x.normalised(&vector(1)?, &vector(2)?, &vector(3)?, &vector(4)?, epsilon);
            literal(shape, &normalised)
        }
        BatchNormKind::Grad => results(shape, gradients(&x, operands, epsilon)?),
    }
}

/// Computes the gradients of x, scale and offset.
fn gradients(x: &Features, operands: &[Literal], epsilon: f64) -> Result<[Vec<f64>; 3]> {
    let [scale, mean, variance, gradient] = [1, 2, 3, 4].map(|i| operands.get(i).map(numbers).unwrap_or_default());
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + epsilon).sqrt()).collect();
    let centered: Vec<f64> = x.each(|f, _, v| v - mean[f]).collect();
    let of_offset = x.sums(|i| gradient[i]);
    let products = x.sums(|i| gradient[i] * centered[i]);
    let of_scale: Vec<f64> = products.iter().zip(&inverse).map(|(p, r)| p * r).collect();
    let count = x.elements_a_feature();
    let of_x = x.each(|f, i, _| {
        let straight = gradient[i] - of_offset[f] / count;
        let through_variance = centered[i] * inverse[f] * inverse[f] * products[f] / count;
        scale[f] * inverse[f] * (straight - through_variance)
    });
    Ok([of_x.collect(), of_scale, of_offset])
}

/// An array whose elements are grouped by feature.
struct Features {
    values: Vec<f64>,
    /// Distance between elements of consecutive features.
    stride: usize,
    count: usize,
}

impl Features {
    fn new(operands: &[Literal], i: usize, feature_index: usize) -> Result<Features> {
        let x = operands.get(i).ok_or_else(checks::missing_operand)?;
        let dims = x.array_shape().dims();
        // Saturates only if another dimension has size 0.
        let stride = dims[feature_index + 1..].iter().fold(1usize, |n, &d| n.saturating_mul(d));
        Ok(Features { values: numbers(x), stride: stride.max(1), count: dims[feature_index] })
    }

    /// Returns `f(feature, position, value)` for each element.
    fn each<T>(&self, f: impl Fn(usize, usize, f64) -> T) -> impl Iterator<Item = T> {
        self.values.iter().enumerate().map(move |(i, &v)| f(i / self.stride % self.count.max(1), i, v))
    }

    fn elements_a_feature(&self) -> f64 {
        (self.values.len() / self.count.max(1)) as f64
    }

    /// Returns for each feature the sum of `f(position)` over its elements.
    fn sums(&self, f: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        self.each(|feature, i, _| (feature, f(i))).for_each(|(feature, v)| sums[feature] += v);
        sums
    }

    /// Returns for each feature the mean of `f(feature, value)` over its elements.
    fn means(&self, f: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        self.each(|feature, _, v| (feature, f(feature, v))).for_each(|(feature, v)| sums[feature] += v);
        sums.into_iter().map(|sum| sum / self.elements_a_feature()).collect()
    }

    fn normalised(&self, scale: &[f64], offset: &[f64], mean: &[f64], variance: &[f64], epsilon: f64) -> Vec<f64> {
        self.each(|f, _, v| (v - mean[f]) / (variance[f] + epsilon).sqrt() * scale[f] + offset[f]).collect()
    }
}

fn numbers(literal: &Literal) -> Vec<f64> {
    let count = literal.array_shape().element_count();
    let number = |i| match literal.get(i) {
        Scalar::Float(v) => v,
        Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) | Scalar::Complex(..) => f64::NAN,
    };
    (0..count).map(number).collect()
}

fn literal(shape: &Shape, values: &[f64]) -> Result<Literal> {
    let shape: &ArrayShape = shape.expect_array()?;
    Literal::from_fn(shape, |i| Scalar::Float(values[i]))
}

fn results(shape: &Shape, values: [Vec<f64>; 3]) -> Result<Literal> {
    let shapes =
        shape.as_tuple().ok_or_else(|| Error::internal("the result of a batch normalisation is not a tuple"))?;
    Ok(Literal::tuple(shapes.iter().zip(&values).map(|(s, v)| literal(s, v)).collect::<Result<_>>()?))
}
