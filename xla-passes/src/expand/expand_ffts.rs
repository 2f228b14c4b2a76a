//! Expands Fourier transforms into dots with matrices of roots of unity.

use std::f64::consts::TAU;

use xla_hlo::ops::{BinaryOp, CompareDirection, Dot, DotDims, Fft, FftType, Precision, Reverse, Transpose, UnaryOp};
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Literal, Module, Op, Opcode, Result, Scalar};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::is_static;
use crate::{Pass, PassContext};

/// Elements of a line up to which it is one dot with a matrix; longer ones are taken apart if their length has factors.
const DIRECT: usize = 64;

/// Elements of the largest table of roots that is put into a program.
const MAX_TABLE: usize = 1 << 16;

/// Puts `fft` in terms of real products of matrices, where the target lacks it.
///
/// A line of `n = p m` elements is `m` transforms of `p` elements, one product with a matrix, factors that turn, and
/// `p` transforms of `m` (J. Cooley and J. Tukey, 1965): `n` times the sum of the factors, each of at most 64 where `n`
/// has such. Roots are constants, rounded once. Transforms that need a table of more than 65,536 of them (longer lines,
/// primes above 256) stay. Results differ from the evaluator's, which works in `f64`, by the rounding of sums.
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
            Op::Fft(op) => op.fft_length.iter().all(|&n| fits(n)) && is_static(graph, id),
            _ => false,
        };
        super::replace_each(self, module, cx, wanted, expand)
    }
}

/// Whether the tables for lines of `n` elements are small enough.
fn fits(n: usize) -> bool {
    match factor(n) {
        None => n.saturating_mul(n) <= MAX_TABLE,
        Some(p) => n <= MAX_TABLE && p * p <= MAX_TABLE && fits(n / p),
    }
}

/// The factor by which a line is taken apart: the greatest that is transformed directly, else the least there is.
fn factor(n: usize) -> Option<usize> {
    if n <= DIRECT {
        return None;
    }
    let direct = (2..=DIRECT).rev().find(|&p| n.is_multiple_of(p));
    direct.or_else(|| (DIRECT + 1..).take_while(|p| p * p <= n.min(MAX_TABLE)).find(|&p| n.is_multiple_of(p)))
}

/// Real and imaginary parts, two arrays of one shape.
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
    let mut parts = if at.element_type(x)?.is_complex() {
        Parts { re: at.unary(UnaryOp::Real, x)?, im: at.unary(UnaryOp::Imag, x)? }
    } else {
        let like = at.array(x)?.clone();
        Parts { re: x, im: at.splat(&like, Scalar::Float(0.0))? }
    };
    let (first, last) = (shape.rank() - op.fft_length.len(), shape.rank() - 1);
    let inverse = matches!(op.fft_type, FftType::Ifft | FftType::Irfft);
    // The dimension that is cut in half is transformed while nothing else is: first of all, or last of all.
    if op.fft_type == FftType::Rfft {
        parts = line(at, parts, inverse)?;
        parts = each(parts, |x| at.slice(x, last, 0, shape.dims()[last]))?;
    }
    for d in first..last {
        parts = each(parts, |x| swapped(at, x, d, last))?;
        parts = line(at, parts, inverse)?;
        parts = each(parts, |x| swapped(at, x, d, last))?;
    }
    match op.fft_type {
        FftType::Rfft => {}
        FftType::Fft | FftType::Ifft => parts = line(at, parts, inverse)?,
        FftType::Irfft => {
            parts = mirrored(at, parts, shape.dims()[last])?;
            parts = line(at, parts, inverse)?;
        }
    }
    if inverse {
        let count: f64 = op.fft_length.iter().map(|&n| n as f64).product();
        parts = each(parts, |x| at.binary_with(BinaryOp::Divide, x, Scalar::Float(count)))?;
    }
    if op.fft_type == FftType::Irfft { Ok(parts.re) } else { at.binary(BinaryOp::Complex, parts.re, parts.im) }
}

/// The transforms of the lines along the last dimension, not scaled.
fn line(at: &mut Inserter<'_>, x: Parts, inverse: bool) -> Result<Parts> {
    let dims = at.dims(x.re);
    let &[ref batch @ .., n] = &dims[..] else { return Ok(x) };
    let Some(p) = factor(n) else { return roots_product(at, x, dims.len() - 1, inverse) };
    // Elements are x[j1, j2], results y[k2, k1]; numbers are m j1 + j2 and p k2 + k1.
    let m = n / p;
    let rows = batch.len();
    let x = each(x, |x| at.reshape(x, &[batch, &[p, m]].concat()))?;
    let x = roots_product(at, x, rows, inverse)?;
    let turns = table(at, [m, p], n, inverse, at.element_type(x.re)?)?;
    let dims = at.dims(x.re);
    let turns = each(turns, |t| at.broadcast(t, &dims, &[rows, rows + 1]))?;
    let x = times(x, turns, &mut |x, y| at.binary(BinaryOp::Multiply, x, y))?.sums(at)?;
    let x = each(x, |x| swapped(at, x, rows, rows + 1))?;
    let y = line(at, x, inverse)?;
    let y = each(y, |y| swapped(at, y, rows, rows + 1))?;
    each(y, |y| at.reshape(y, &[batch, &[n]].concat()))
}

/// Transforms along one dimension, which becomes the last, by one product with the matrix of roots.
fn roots_product(at: &mut Inserter<'_>, x: Parts, dimension: usize, inverse: bool) -> Result<Parts> {
    let n = at.dims(x.re)[dimension];
    let roots = table(at, [n, n], n, inverse, at.element_type(x.re)?)?;
    let dims = DotDims { lhs_contracting: vec![dimension], rhs_contracting: vec![1], ..DotDims::default() };
    // A lower default precision would cost accuracy in every step.
    let precision = vec![Precision::Highest; 2];
    let dot = Dot { dims, precision, algorithm: None };
    times(x, roots, &mut |x, y| at.add(dot.clone(), [x, y]))?.sums(at)
}

/// The four products of parts.
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

/// The roots `exp(-2 pi i j k / n)`, or their conjugates, for row `j` and column `k`.
fn table(
    at: &mut Inserter<'_>,
    [rows, columns]: [usize; 2],
    n: usize,
    inverse: bool,
    ty: ElementType,
) -> Result<Parts> {
    let shape = ArrayShape::new(ty, [rows, columns]);
    let sign = if inverse { 1.0 } else { -1.0 };
    // Rows and columns are so few that their product is far from overflowing.
    let angle = |i: usize| TAU * ((i / columns) * (i % columns) % n) as f64 / n as f64;
    let re = Literal::from_fn(&shape, |i| Scalar::Float(exact(angle(i).cos())))?;
    let im = Literal::from_fn(&shape, |i| Scalar::Float(sign * exact(angle(i).sin())))?;
    Ok(Parts { re: at.literal(re)?, im: at.literal(im)? })
}

/// Zero where it is only not zero since quarter turns have no exact angle.
fn exact(x: f64) -> f64 {
    if x.abs() < 1e-15 { 0.0 } else { x }
}

/// Lines of `n` elements whose transforms are real, from their first halves; the imaginary parts of elements that
/// mirror themselves do not count.
fn mirrored(at: &mut Inserter<'_>, half: Parts, n: usize) -> Result<Parts> {
    let shape = at.array(half.im)?.clone();
    let (last, size) = (shape.rank() - 1, Fft::half_size(n));
    let place = at.iota(ElementType::S32, shape.dims(), last)?;
    let mut is_own = at.binary_with(BinaryOp::Multiply, place, Scalar::Signed(2))?;
    is_own = at.binary_with(BinaryOp::Remainder, is_own, Scalar::Signed(n as i64))?;
    let zero = at.splat(&ArrayShape::new(ElementType::S32, shape.dims()), Scalar::Signed(0))?;
    let is_own = at.compare(CompareDirection::Eq, is_own, zero)?;
    let none = at.splat(&shape, Scalar::Float(0.0))?;
    let half = Parts { re: half.re, im: at.select(is_own, none, half.im)? };
    if n == size {
        return Ok(half);
    }
    let rest = each(half, |x| {
        let rest = at.slice(x, last, 1, n - size + 1)?;
        at.add(Reverse { dimensions: vec![last] }, [rest])
    })?;
    let rest = Parts { re: rest.re, im: at.unary(UnaryOp::Negate, rest.im)? };
    Ok(Parts { re: at.concatenate(&[half.re, rest.re], last)?, im: at.concatenate(&[half.im, rest.im], last)? })
}

/// The array with two dimensions in each other's place.
fn swapped(at: &mut Inserter<'_>, x: InstrId, a: usize, b: usize) -> Result<InstrId> {
    let mut permutation: Vec<usize> = (0..at.dims(x).len()).collect();
    permutation.swap(a, b);
    at.add(Transpose { permutation }, [x])
}

/// The same of both parts.
fn each(x: Parts, mut f: impl FnMut(InstrId) -> Result<InstrId>) -> Result<Parts> {
    Ok(Parts { re: f(x.re)?, im: f(x.im)? })
}
