//! Evaluator of the transform family, in double precision.

use std::f64::consts::TAU;

use super::*;
use crate::Scalar;
use crate::ops::checks;

type Complex = (f64, f64);

/// Transforms one dimension at a time. The redundant half of a real transform is reconstructed (IRFFT) or dropped
/// (RFFT).
pub(super) fn fft(op: &Fft, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let result = shape.expect_array()?;
    if result.element_count() == 0 {
        return Literal::zeros(result);
    }
    let mut dims = operand.array_shape().dims().to_vec();
    let mut values: Vec<Complex> = (0..operand.array_shape().element_count()).map(|i| parts(operand.get(i))).collect();
    let (first, last) = (dims.len() - op.fft_length.len(), dims.len() - 1);
    let inverse = matches!(op.fft_type, FftType::Ifft | FftType::Irfft);
    // The dimension with a redundant half must be transformed first (RFFT) or last (IRFFT).
    let mut order: Vec<usize> = (first..=last).collect();
    if op.fft_type == FftType::Rfft {
        order.reverse();
    }
    for d in order {
        let size = match op.fft_type {
            FftType::Rfft | FftType::Irfft if d == last => result.dims()[d],
            FftType::Fft | FftType::Ifft | FftType::Rfft | FftType::Irfft => dims[d],
        };
        let transformed = |line: &[Complex]| match op.fft_type {
            FftType::Irfft if d == last => transform(&mirrored(line, size), inverse),
            FftType::Fft | FftType::Ifft | FftType::Rfft | FftType::Irfft => transform(line, inverse),
        };
        values = along(&mut dims, d, size, &values, transformed);
    }
    let count = op.fft_length.iter().product::<usize>() as f64;
    let scaled = |x: f64| if inverse { x / count } else { x };
    Literal::from_fn(result, |i| match op.fft_type {
        FftType::Irfft => Scalar::Float(scaled(values[i].0)),
        FftType::Fft | FftType::Ifft | FftType::Rfft => Scalar::Complex(scaled(values[i].0), scaled(values[i].1)),
    })
}

fn parts(element: Scalar) -> Complex {
    match element {
        Scalar::Complex(re, im) => (re, im),
        Scalar::Float(re) => (re, 0.0),
        Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) => (0.0, 0.0),
    }
}

/// Applies `f` to every line along dimension `d` and keeps the first `size` elements of each result.
fn along(
    dims: &mut [usize],
    d: usize,
    size: usize,
    values: &[Complex],
    f: impl Fn(&[Complex]) -> Vec<Complex>,
) -> Vec<Complex> {
    let old = std::mem::replace(&mut dims[d], size);
    let inner: usize = dims[d + 1..].iter().product();
    let outer: usize = dims[..d].iter().product();
    let mut out = vec![(0.0, 0.0); outer * size * inner];
    for o in 0..outer {
        for i in 0..inner {
            let line: Vec<Complex> = (0..old).map(|j| values[(o * old + j) * inner + i]).collect();
            for (j, value) in f(&line).into_iter().take(size).enumerate() {
                out[(o * size + j) * inner + i] = value;
            }
        }
    }
    out
}

/// Returns all `n` elements of the transform of a real line from its first half.
fn mirrored(half: &[Complex], n: usize) -> Vec<Complex> {
    (0..n)
        .map(|k| match half[k.min(n - k)] {
            // These elements are their own mirror images, so they are real.
            (re, _) if k == 0 || 2 * k == n => (re, 0.0),
            (re, im) if 2 * k < n => (re, im),
            (re, im) => (re, -im),
        })
        .collect()
}

/// Returns the unscaled transform of one line. Uses the definition for prime lengths. For `n = p m` with `p` the least
/// prime factor, element `k` is the sum over `r` of `w^(r k)` times element `k mod m` of the transform of
/// `x[r], x[r + p], ...` (J. Cooley and J. Tukey, 1965).
pub(super) fn transform(x: &[Complex], inverse: bool) -> Vec<Complex> {
    let n = x.len();
    if n <= 1 {
        return x.to_vec();
    }
    let p = (2..n).take_while(|p| p * p <= n).find(|&p| n.is_multiple_of(p)).unwrap_or(n);
    let m = n / p;
    let parts: Vec<Vec<Complex>> =
        (0..p).map(|r| transform(&x[r..].iter().step_by(p).copied().collect::<Vec<_>>(), inverse)).collect();
    let roots: Vec<Complex> = (0..n).map(|j| root(j, n, inverse)).collect();
    (0..n)
        .map(|k| {
            parts.iter().enumerate().fold((0.0, 0.0), |sum, (r, part)| {
                let (a, b) = (part[k % m], roots[(r as u128 * k as u128 % n as u128) as usize]);
                (sum.0 + (a.0 * b.0 - a.1 * b.1), sum.1 + (a.0 * b.1 + a.1 * b.0))
            })
        })
        .collect()
}

/// Returns `exp(-2 pi i j / n)`, or its conjugate for an inverse transform. Exact if the result is 1, -1, i or -i.
pub(super) fn root(j: usize, n: usize, inverse: bool) -> Complex {
    let sign = if inverse { 1.0 } else { -1.0 };
    // Subtracts the nearest multiple of pi/2 first, so that the remaining angle is small and its sine accurate.
    let quarter = (8 * j as u128 + n as u128) / (2 * n as u128) % 4;
    let rest = 4 * j as i128 - ((8 * j as u128 + n as u128) / (2 * n as u128) * n as u128) as i128;
    let (sin, cos) = libm::sincos(TAU * rest as f64 / (4.0 * n as f64));
    let (re, im) = match quarter {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    };
    (re, sign * im)
}
