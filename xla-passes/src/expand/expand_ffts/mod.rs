//! Expands Fourier transforms (FFT) into stages of matrix products with roots of unity.

pub(crate) mod radices;
mod real;
mod roots;

use xla_hlo::ops::{BinaryOp, Dot, DotDims, Fft, FftType, Precision, Transpose, UnaryOp};
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Literal, Module, Op, Opcode, Result, Scalar};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::is_static;
use crate::{Pass, PassContext};
use radices::{MAX_DIRECT, MAX_LENGTH, radices, smooth_length};
use roots::{chirp, root};

/// Expands `fft` into real matrix products and elementwise operations if the target lacks it.
///
/// Lines become columns: the transformed dimension is the first one, and all others are contiguous. A transform of `n`
/// elements is a sequence of Stockham stages (W. Cochran and others, 1967), one for each radix `r` of `radices`: a
/// product with the matrix of `r` roots of unity, twiddle factors, and a transpose that keeps the columns contiguous. A
/// prime radix above 256 is computed as a convolution (L. Bluestein, 1970) of a smooth length. Roots are constants that
/// are rounded once. Real lines of even length are computed as complex lines of half the length. Lines of more than
/// 65,536 elements are not expanded. Results differ from the evaluator's, which computes in `f64`, by the rounding of
/// sums.
pub struct ExpandFfts;

impl Pass for ExpandFfts {
    fn name(&self) -> &'static str {
        "expand-ffts"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !cx.profile().lacks.contains(&Opcode::Fft) {
            return Ok(());
        }
        let wanted = |graph: &Computation, id: InstrId| match graph[id].op() {
            Op::Fft(op) => op.fft_length.iter().all(|&n| n <= MAX_LENGTH) && is_static(graph, id),
            _ => false,
        };
        super::replace_each(self, module, cx, wanted, expand)
    }
}

/// Real and imaginary parts: two arrays of equal shape.
#[derive(Clone, Copy)]
struct Parts {
    re: InstrId,
    im: InstrId,
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::Fft(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let (shape, x) = (at.array(id)?.clone(), at.operands(id)[0]);
    if shape.element_count() == 0 {
        return at.zeros(&shape);
    }
    let (first, last) = (shape.rank() - op.fft_length.len(), shape.rank() - 1);
    let inverse = matches!(op.fft_type, FftType::Ifft | FftType::Irfft);
    // Real lines are transformed first, or last in an inverse transform.
    let mut parts = match op.fft_type {
        FftType::Rfft => real::forward(at, x)?,
        _ => Parts { re: at.unary(UnaryOp::Real, x)?, im: at.unary(UnaryOp::Imag, x)? },
    };
    for d in first..last {
        parts = line(at, parts, d, inverse)?;
    }
    let scaled = |at: &mut Inserter<'_>, x| {
        let count: f64 = op.fft_length.iter().map(|&n| n as f64).product();
        if inverse { at.binary_with(BinaryOp::Divide, x, Scalar::Float(count)) } else { Ok(x) }
    };
    if op.fft_type == FftType::Irfft {
        let lines = real::inverse(at, parts, shape.dims()[last])?;
        return scaled(at, lines);
    }
    if op.fft_type != FftType::Rfft {
        parts = line(at, parts, last, inverse)?;
    }
    let parts = each(parts, |x| scaled(at, x))?;
    at.binary(BinaryOp::Complex, parts.re, parts.im)
}

/// Returns the unscaled transforms of the lines along a dimension.
fn line(at: &mut Inserter<'_>, x: Parts, dimension: usize, inverse: bool) -> Result<Parts> {
    let dims = at.dims(x.re);
    let n = dims[dimension];
    if n <= 1 {
        return Ok(x);
    }
    let before: usize = dims[..dimension].iter().product();
    let after: usize = dims[dimension + 1..].iter().product();
    let x = each(x, |x| at.reshape(x, &[before, n, after]))?;
    let x = each(x, |x| swapped(at, x, 0, 1))?;
    let x = each(x, |x| at.reshape(x, &[n, before * after]))?;
    let y = columns(at, x, inverse)?;
    let y = each(y, |y| at.reshape(y, &[n, before, after]))?;
    let y = each(y, |y| swapped(at, y, 0, 1))?;
    each(y, |y| at.reshape(y, &dims))
}

/// Returns the transforms of the columns of `[n, count]`, computed by Stockham stages.
fn columns(at: &mut Inserter<'_>, mut x: Parts, inverse: bool) -> Result<Parts> {
    let dims = at.dims(x.re);
    let [n, count] = [dims[0], dims[1]];
    // Number of elements that remain to be transformed together, and of results of earlier stages for each of them.
    let (mut left, mut done) = (n, 1);
    for r in radices(n, count) {
        let (m, width) = (left / r, done * count);
        x = each(x, |x| at.reshape(x, &[r, m * width]))?;
        x = if r <= MAX_DIRECT { direct(at, x, inverse)? } else { convolved(at, x, inverse)? };
        x = each(x, |x| at.reshape(x, &[r, m, width]))?;
        if m > 1 {
            let factors = table(at, [r, m], left, inverse, at.element_type(x.re)?)?;
            let factors = each(factors, |t| at.broadcast(t, &[r, m, width], &[0, 1]))?;
            x = product(at, x, factors)?;
            x = each(x, |x| swapped(at, x, 0, 1))?;
        }
        (left, done) = (m, done * r);
    }
    each(x, |x| at.reshape(x, &dims))
}

/// Returns the transforms of the columns of `[n, count]`, computed by products with the matrix of roots.
fn direct(at: &mut Inserter<'_>, x: Parts, inverse: bool) -> Result<Parts> {
    let n = at.dims(x.re)[0];
    let roots = table(at, [n, n], n, inverse, at.element_type(x.re)?)?;
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
    // The default precision of a target may be lower, which would lose accuracy in every stage.
    let precision = vec![Precision::Highest; 2];
    let dot = Dot { dims, precision, algorithm: None };
    times(roots, x, &mut |x, y| at.add(dot.clone(), [x, y]))?.sums(at)
}

/// Returns the transforms of the columns of `[n, count]`, computed by Bluestein's convolution with a
/// [chirp](Fft::chirp).
fn convolved(at: &mut Inserter<'_>, x: Parts, inverse: bool) -> Result<Parts> {
    let (n, count) = (at.dims(x.re)[0], at.dims(x.re)[1]);
    let (size, ty) = (smooth_length(2 * n - 1), at.element_type(x.re)?);
    let chirp = chirp(n, inverse);
    let outer = vector(at, &chirp, x.re, 0)?;
    let x = product(at, x, outer)?;
    let padding = at.zeros(&ArrayShape::new(ty, [size - n, count]))?;
    let x = each(x, |x| at.concatenate(&[x, padding], 0))?;
    let x = columns(at, x, false)?;
    let kernel = vector(at, &Fft::chirp_kernel(&chirp, size), x.re, 0)?;
    let x = product(at, x, kernel)?;
    let x = columns(at, x, true)?;
    let x = each(x, |x| at.slice(x, 0, 0, n))?;
    product(at, x, outer)
}

/// Returns complex constants along a dimension of an array with the shape of `like`; the extent must match.
fn vector(at: &mut Inserter<'_>, values: &[(f64, f64)], like: InstrId, dimension: usize) -> Result<Parts> {
    let (shape, dims) = (ArrayShape::new(at.element_type(like)?, [values.len()]), at.dims(like));
    let re = Literal::from_fn(&shape, |i| Scalar::Float(values[i].0))?;
    let im = Literal::from_fn(&shape, |i| Scalar::Float(values[i].1))?;
    let parts = Parts { re: at.literal(re)?, im: at.literal(im)? };
    each(parts, |x| at.broadcast(x, &dims, &[dimension]))
}

/// Returns the elementwise complex product.
fn product(at: &mut Inserter<'_>, x: Parts, y: Parts) -> Result<Parts> {
    times(x, y, &mut |x, y| at.binary(BinaryOp::Multiply, x, y))?.sums(at)
}

/// The four products of real and imaginary parts.
struct Products {
    re_re: InstrId,
    im_im: InstrId,
    re_im: InstrId,
    im_re: InstrId,
}

fn times(x: Parts, y: Parts, product: &mut dyn FnMut(InstrId, InstrId) -> Result<InstrId>) -> Result<Products> {
    Ok(Products {
        re_re: product(x.re, y.re)?,
        im_im: product(x.im, y.im)?,
        re_im: product(x.re, y.im)?,
        im_re: product(x.im, y.re)?,
    })
}

impl Products {
    fn sums(self, at: &mut Inserter<'_>) -> Result<Parts> {
        Ok(Parts {
            re: at.binary(BinaryOp::Subtract, self.re_re, self.im_im)?,
            im: at.binary(BinaryOp::Add, self.re_im, self.im_re)?,
        })
    }
}

/// Returns the roots `exp(-2 pi i j k / n)`, or their conjugates, for row `j` and column `k`.
fn table(
    at: &mut Inserter<'_>,
    [rows, columns]: [usize; 2],
    n: usize,
    inverse: bool,
    ty: ElementType,
) -> Result<Parts> {
    let shape = ArrayShape::new(ty, [rows, columns]);
    let sign = if inverse { 1.0 } else { -1.0 };
    // The product of a row and a column index is far from overflow.
    let root = |i: usize| root((i / columns) * (i % columns) % n, n, sign);
    let re = Literal::from_fn(&shape, |i| Scalar::Float(root(i).0))?;
    let im = Literal::from_fn(&shape, |i| Scalar::Float(root(i).1))?;
    Ok(Parts { re: at.literal(re)?, im: at.literal(im)? })
}

/// Swaps two dimensions of an array.
fn swapped(at: &mut Inserter<'_>, x: InstrId, a: usize, b: usize) -> Result<InstrId> {
    let mut permutation: Vec<usize> = (0..at.dims(x).len()).collect();
    permutation.swap(a, b);
    at.add(Transpose { permutation }, [x])
}

/// Applies `f` to both parts.
fn each(x: Parts, mut f: impl FnMut(InstrId) -> Result<InstrId>) -> Result<Parts> {
    Ok(Parts { re: f(x.re)?, im: f(x.im)? })
}
