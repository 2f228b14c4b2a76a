//! Fourier transforms, and operations on well-conditioned matrices.

use xla_hlo::ops::{Fft, FftType, TransposeKind, TriangularSolve};
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar};

use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::values::{self, Temper};

/// Greatest size of a transformed dimension; the evaluator is quadratic for primes.
const MOST_LENGTH: usize = 700;
/// Greatest size of a matrix.
const MOST_ROWS: usize = 70;

impl Graph<'_> {
    pub(super) fn fft(&mut self) -> Option<Value> {
        use ElementType::{C64, C128, F32, F64};
        let is_tame = |v: &Value| v.numbers.bound <= 1e4 && v.numbers.absolute(v.ty()).is_some();
        let x = match self.random.percent(40) {
            true => self.any(|v| matches!(v.ty(), F32 | F64 | C64 | C128) && v.rank() > 0 && is_tame(v)),
            false => None,
        };
        let x = x.unwrap_or_else(|| {
            let (ty, mut dims) = (self.random.pick(&[F32, F64, C64, C128]), self.dims());
            if dims.is_empty() {
                dims.push(self.size());
            }
            self.leaf(ty, &dims, Temper::Smooth)
        });
        let rank = self.random.between(1, x.rank().min(3));
        let mut length = x.dims()[x.rank() - rank..].to_vec();
        if length.iter().any(|&n| n > MOST_LENGTH) {
            return None;
        }
        let fft_type = match x.ty() {
            F32 | F64 => FftType::Rfft,
            _ => self.random.pick(&[FftType::Fft, FftType::Ifft, FftType::Irfft]),
        };
        if fft_type == FftType::Irfft {
            let fits: Vec<usize> = (0..300).filter(|&n| Some(&Fft::half_size(n)) == length.last()).collect();
            *length.last_mut()? = if fits.is_empty() { return None } else { self.random.pick(&fits) };
        }
        let numbers = transformed(fft_type, &x, length.iter().product());
        self.put(numbers, |b| b.fft(fft_type, x.id, length))
    }

    pub(super) fn cholesky(&mut self) -> Option<Value> {
        let (a, n) = self.matrices()?;
        let numbers = Numbers::noisy(a.ty(), 4.0, 0.0, 16.0 + n as f64);
        let lower = self.random.percent(50);
        self.put(numbers, |b| b.cholesky(a.id, lower))
    }

    pub(super) fn triangular_solve(&mut self) -> Option<Value> {
        let (a, n) = self.matrices()?;
        let op = TriangularSolve {
            left_side: self.random.percent(50),
            lower: self.random.percent(50),
            unit_diagonal: self.random.percent(30),
            transpose_a: self.random.pick(&[
                TransposeKind::NoTranspose,
                TransposeKind::Transpose,
                TransposeKind::Adjoint,
            ]),
        };
        let mut dims = a.dims().to_vec();
        let free = dims.len() - if op.left_side { 1 } else { 2 };
        dims[free] = self.size();
        if !self.is_small(&dims) {
            return None;
        }
        let b = self.like(a.ty(), &dims, |n| n.bound <= 1e4 && n.absolute(a.ty()).is_some());
        // The sums of the inverse's rows and columns are below 4.
        let noise = b.numbers.absolute(a.ty())?;
        let numbers = Numbers::noisy(a.ty(), 8.0 * b.numbers.bound, 8.0 * noise, 16.0 + n as f64);
        self.put(numbers, |build| build.triangular_solve(op, a.id, b.id))
    }

    /// Returns matrices and their size. Each diagonal is about 1 and exceeds the sum of the other elements of its row
    /// or column. So triangles of them have small inverses, and they are positive definite as halves of Hermitian
    /// matrices.
    fn matrices(&mut self) -> Option<(Value, usize)> {
        use ElementType::{BF16, C64, C128, F16, F32, F64};
        let ty = self.random.pick(&[F32, F32, F64, C64, C128, F16, BF16]);
        let n = self.size();
        let mut dims: Vec<usize> = (0..self.random.pick(&[0, 0, 1, 2])).map(|_| self.size()).collect();
        dims.extend([n, n]);
        if n > MOST_ROWS || !self.is_small(&dims) {
            return None;
        }
        let shape = ArrayShape::new(ty, dims);
        let (noise, _) = values::literal(self.random, &shape, Temper::Smooth);
        let scale = 1.0 / (16.0 * n.max(1) as f64);
        let element = |i: usize| {
            let one = if i / n % n == i % n { 1.0 } else { 0.0 };
            match noise.get(i) {
                Scalar::Complex(re, im) => Scalar::Complex(one + scale * re, scale * im),
                Scalar::Float(x) => Scalar::Float(one + scale * x),
                other => other,
            }
        };
        let literal = Literal::from_fn(&shape, element).ok()?;
        let numbers = Numbers::within(2.0);
        let value = match self.inputs.is_some() {
            true => self.parameter(literal, numbers),
            false => self.put(Some(numbers), |b| b.constant(literal))?,
        };
        Some((value, n))
    }
}

/// Returns the properties of a transform of `count` elements: a sum of `count` elements, divided by `count` for inverse
/// transforms.
fn transformed(fft_type: FftType, x: &Value, count: usize) -> Option<Numbers> {
    let forward = matches!(fft_type, FftType::Fft | FftType::Rfft);
    let growth = 2.0 * if forward { count.max(1) as f64 } else { 2.0 };
    let noise = x.numbers.absolute(x.ty())?;
    Numbers::noisy(x.ty(), growth * x.numbers.bound, growth * noise, 16.0)
}
