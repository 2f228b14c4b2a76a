//! Fourier transforms.

mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Literal, Result, Shape};

/// Kind of Fourier transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftType {
    /// Complex to complex: `y[k] = sum over j of x[j] exp(-2 pi i j k / n)`.
    Fft,
    /// Inverse of [`FftType::Fft`], divided by the number of transformed elements.
    Ifft,
    /// Real to complex: the first `n / 2 + 1` elements of the last dimension, which determine the others.
    Rfft,
    /// Inverse of [`FftType::Rfft`], complex to real. The omitted elements are assumed to follow from a real result, so
    /// the imaginary parts of elements 0 and `n / 2` have no effect.
    Irfft,
}

/// `fft`: a Fourier transform over the innermost one to three dimensions.
///
/// Elements are `c64` or `c128`. On the real side of [`FftType::Rfft`] and [`FftType::Irfft`] they are `f32` or `f64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fft {
    /// Kind of transform.
    pub fft_type: FftType,
    /// Sizes of the transformed dimensions, on the real side if there is one.
    pub fft_length: Vec<usize>,
}

impl ReadAttributes for Fft {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Fft { fft_type: r.required("fft_type")?, fft_length: r.required("fft_length")? })
    }
}

impl OpRules for Fft {
    fn opcode(&self) -> Opcode {
        Opcode::Fft
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::fft(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("fft_type", &self.fft_type);
        w.attribute("fft_length", &self.fft_length);
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::fft(self, operands, shape)
    }
}

impl Fft {
    /// Returns the size of the last dimension on the complex side of a real transform of `n` elements.
    pub fn half_size(n: usize) -> usize {
        if n == 0 { 0 } else { n / 2 + 1 }
    }

    /// Returns `exp(-2 pi i j / n)` as real and imaginary part. Exact if the result is 1, -1, i or -i.
    pub fn root(j: usize, n: usize) -> (f64, f64) {
        eval::root(j, n, false)
    }

    /// Returns the transform of one complex line.
    pub fn line(x: &[(f64, f64)]) -> Vec<(f64, f64)> {
        eval::transform(x, false)
    }

    /// Returns the chirp `exp(-pi i j^2 / n)` for each `j`. Since `2jk` equals `j^2 + k^2 - (k - j)^2`, a transform of
    /// `n` elements is a convolution between two products with it (Bluestein's algorithm).
    pub fn chirp(n: usize) -> Vec<(f64, f64)> {
        (0..n).map(|j| Fft::root(j * j % (2 * n), 2 * n)).collect()
    }

    /// Returns the transform of the conjugate of a chirp at positive and negative indices, padded to `size` elements
    /// and divided by `size`: the factors of a convolution that is computed by transforms of `size` elements.
    pub fn chirp_kernel(chirp: &[(f64, f64)], size: usize) -> Vec<(f64, f64)> {
        let mut values = vec![(0.0, 0.0); size];
        for (j, &(re, im)) in chirp.iter().enumerate() {
            let scaled = (re / size as f64, -im / size as f64);
            values[j] = scaled;
            values[(size - j) % size] = scaled;
        }
        Fft::line(&values)
    }
}
