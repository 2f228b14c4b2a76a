//! Execution of Fourier transforms in device memory, unnormalized.

use std::f64::consts::TAU;

use simulated_gpu::finding::Problem;
use simulated_gpu::machine::Memory;

use super::plan::{Transform, TransformKind};
use crate::element::Number;

/// Transform with its arrays, fully checked.
#[derive(Clone, Debug)]
pub(super) struct Transforming {
    pub transform: Transform,
    /// Sign of the exponent: -1 or 1.
    pub sign: f64,
    pub input: u64,
    pub output: u64,
}

impl Transforming {
    /// Executes the call.
    pub fn run(&self, memory: &mut Memory) -> Result<(), Problem> {
        let Transforming { transform, input, output, .. } = self;
        let [(from, read), (to, _)] = transform.sides();
        let numbers = from.read(memory, *input, read)?;
        if transform.kind == TransformKind::ComplexToReal {
            // A C2R transform may overwrite its input.
            memory.forget(*input, read * from.bytes())?;
        }
        to.write(memory, *output, &self.transformed(numbers))
    }

    fn transformed(&self, numbers: Vec<Number>) -> Vec<Number> {
        let Transform { kind, sizes, .. } = &self.transform;
        let (n, rank) = (sizes[sizes.len() - 1], sizes.len());
        let half = n / 2 + 1;
        match kind {
            TransformKind::Complex => (0..rank).fold(numbers, |numbers, d| along(&numbers, sizes, d, self.sign)),
            TransformKind::RealToComplex => {
                let all = (0..rank).fold(numbers, |numbers, d| along(&numbers, sizes, d, -1.0));
                all.chunks_exact(n).flat_map(|line| line[..half].to_vec()).collect()
            }
            TransformKind::ComplexToReal => {
                let mut halves = sizes.clone();
                halves[rank - 1] = half;
                let numbers = (0..rank - 1).fold(numbers, |numbers, d| along(&numbers, &halves, d, 1.0));
                let lines = numbers.chunks_exact(half).flat_map(|line| line_of(&mirrored(line, n), 1.0));
                lines.collect()
            }
        }
    }
}

/// Expands half of a Hermitian line; elements that equal their own mirror image are taken as real.
fn mirrored(line: &[Number], n: usize) -> Vec<Number> {
    let number = |k: usize| match k {
        0 => (line[0].0, 0.0),
        _ if 2 * k == n => (line[k].0, 0.0),
        _ if k < line.len() => line[k],
        _ => (line[n - k].0, -line[n - k].1),
    };
    (0..n).map(number).collect()
}

/// Transforms all lines along a dimension.
fn along(numbers: &[Number], sizes: &[usize], dimension: usize, sign: f64) -> Vec<Number> {
    let (n, stride) = (sizes[dimension], sizes[dimension + 1..].iter().product::<usize>());
    let mut made = numbers.to_vec();
    for block in (0..numbers.len()).step_by(n * stride) {
        for first in block..block + stride {
            let line: Vec<Number> = (0..n).map(|j| numbers[first + j * stride]).collect();
            for (k, number) in line_of(&line, sign).into_iter().enumerate() {
                made[first + k * stride] = number;
            }
        }
    }
    made
}

/// Computes `sum over j of x[j] exp(sign * 2 pi i j k / n)` for all `k`, recursively by halves while `n` is even.
fn line_of(line: &[Number], sign: f64) -> Vec<Number> {
    let n = line.len();
    let root = |power: usize| {
        let angle = sign * TAU * (power % n) as f64 / n as f64;
        (angle.cos(), angle.sin())
    };
    if n > 2 && n.is_multiple_of(2) {
        let part = |first: usize| line_of(&line.iter().skip(first).step_by(2).copied().collect::<Vec<_>>(), sign);
        let (even, odd) = (part(0), part(1));
        return (0..n).map(|k| plus(even[k % (n / 2)], times(root(k), odd[k % (n / 2)]))).collect();
    }
    (0..n).map(|k| (0..n).fold((0.0, 0.0), |sum, j| plus(sum, times(root(j * k), line[j])))).collect()
}

fn plus(a: Number, b: Number) -> Number {
    (a.0 + b.0, a.1 + b.1)
}

fn times(a: Number, b: Number) -> Number {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_sums_agree() {
        for n in [1usize, 2, 3, 5, 6, 8, 12] {
            let line: Vec<Number> = (0..n).map(|j| (j as f64, 1.0 - (j * j) as f64)).collect();
            for sign in [-1.0, 1.0] {
                let found = line_of(&line, sign);
                for (k, found) in found.into_iter().enumerate() {
                    let term = |j: usize| {
                        let angle = sign * TAU * (j * k) as f64 / n as f64;
                        times((angle.cos(), angle.sin()), line[j])
                    };
                    let sum = (0..n).map(term).fold((0.0, 0.0), plus);
                    assert!((found.0 - sum.0).abs() + (found.1 - sum.1).abs() < 1e-9, "{n} {k}");
                }
            }
        }
    }
}
