//! Transforms of real lines: an even length is computed as half as many complex elements.

use xla_hlo::ops::{BinaryOp, CompareDirection, Fft, Reverse, UnaryOp};
use xla_hlo::{ArrayShape, ElementType, InstrId, Result, Scalar};

use super::roots::root;
use super::{Parts, each, line, product, vector};
use crate::rewrite::builder::Inserter;

/// Returns the first `n / 2 + 1` elements of the transforms of real lines `[..., n]`.
pub(super) fn forward(at: &mut Inserter<'_>, x: InstrId) -> Result<Parts> {
    let shape = at.array(x)?.clone();
    let (last, n) = (shape.rank() - 1, shape.dims()[shape.rank() - 1]);
    if !n.is_multiple_of(2) {
        let parts = Parts { re: x, im: at.splat(&shape, Scalar::Float(0.0))? };
        let parts = line(at, parts, last, false)?;
        return each(parts, |x| at.slice(x, last, 0, Fft::half_size(n)));
    }
    // Elements at even indices are the real parts, elements at odd indices the imaginary parts.
    let m = n / 2;
    let pairs = at.reshape(x, &[&shape.dims()[..last], &[m, 2]].concat())?;
    let part = |at: &mut Inserter<'_>, i| {
        let part = at.slice(pairs, last + 1, i, i + 1)?;
        at.reshape(part, &[&shape.dims()[..last], &[m]].concat())
    };
    let z = Parts { re: part(at, 0)?, im: part(at, 1)? };
    let z = line(at, z, last, false)?;
    // With `z[m] = z[0]`, the transforms of the even and odd elements are the conjugate-symmetric and antisymmetric
    // parts of `z[k]` and `z[m - k]`.
    let z = each(z, |x| {
        let first = at.slice(x, last, 0, 1)?;
        at.concatenate(&[x, first], last)
    })?;
    let (even, odd) = halves(at, z, last)?;
    let odd = Parts { re: odd.im, im: at.unary(UnaryOp::Negate, odd.re)? };
    let odd = turned(at, odd, last, n, -1.0)?;
    let sum = Parts { re: at.binary(BinaryOp::Add, even.re, odd.re)?, im: at.binary(BinaryOp::Add, even.im, odd.im)? };
    each(sum, |x| at.binary_with(BinaryOp::Multiply, x, Scalar::Float(0.5)))
}

/// Returns the real lines of `n` elements whose transforms start with `half`, times `n`. Imaginary parts of elements
/// that are their own mirror image are ignored.
pub(super) fn inverse(at: &mut Inserter<'_>, half: Parts, n: usize) -> Result<InstrId> {
    let half = without_own_imaginary(at, half, n)?;
    let last = at.dims(half.re).len() - 1;
    if !n.is_multiple_of(2) {
        let whole = mirrored(at, half, n)?;
        return Ok(line(at, whole, last, true)?.re);
    }
    let m = n / 2;
    let (even, odd) = halves(at, half, last)?;
    let [even, odd] = [even, odd].map(|x| each(x, |x| at.slice(x, last, 0, m)));
    let (even, odd) = (even?, odd?);
    let odd = turned(at, odd, last, n, 1.0)?;
    let z =
        Parts { re: at.binary(BinaryOp::Subtract, even.re, odd.im)?, im: at.binary(BinaryOp::Add, even.im, odd.re)? };
    let z = line(at, z, last, true)?;
    let mut dims = at.dims(z.re);
    let columns = [&dims[..], &[1]].concat();
    let z = each(z, |x| at.reshape(x, &columns))?;
    let pairs = at.concatenate(&[z.re, z.im], last + 1)?;
    dims[last] = n;
    at.reshape(pairs, &dims)
}

/// Returns the sums and differences of the elements `x[k]` and the conjugates of `x[m - k]` of lines of `m + 1`.
fn halves(at: &mut Inserter<'_>, x: Parts, last: usize) -> Result<(Parts, Parts)> {
    let back = each(x, |x| at.add(Reverse { dimensions: vec![last] }, [x]))?;
    let mut parts = |re, im| -> Result<Parts> {
        Ok(Parts { re: at.binary(re, x.re, back.re)?, im: at.binary(im, x.im, back.im)? })
    };
    Ok((parts(BinaryOp::Add, BinaryOp::Subtract)?, parts(BinaryOp::Subtract, BinaryOp::Add)?))
}

/// Multiplies lines by `exp(sign 2 pi i k / n)`.
fn turned(at: &mut Inserter<'_>, x: Parts, last: usize, n: usize, sign: f64) -> Result<Parts> {
    let roots: Vec<(f64, f64)> = (0..at.dims(x.re)[last]).map(|k| root(k, n, sign)).collect();
    let roots = vector(at, &roots, x.re, last)?;
    product(at, x, roots)
}

/// Returns the first half of a transform, with zero imaginary parts for elements that are their own mirror image.
fn without_own_imaginary(at: &mut Inserter<'_>, half: Parts, n: usize) -> Result<Parts> {
    let shape = at.array(half.im)?.clone();
    let place = at.iota(ElementType::S32, shape.dims(), shape.rank() - 1)?;
    let twice = at.binary_with(BinaryOp::Multiply, place, Scalar::Signed(2))?;
    let left = at.binary_with(BinaryOp::Remainder, twice, Scalar::Signed(n as i64))?;
    let zero = at.splat(&ArrayShape::new(ElementType::S32, shape.dims()), Scalar::Signed(0))?;
    let is_own = at.compare(CompareDirection::Eq, left, zero)?;
    let none = at.splat(&shape, Scalar::Float(0.0))?;
    Ok(Parts { re: half.re, im: at.select(is_own, none, half.im)? })
}

/// Returns the conjugate-symmetric lines of `n` elements, which have real transforms, from their first halves.
fn mirrored(at: &mut Inserter<'_>, half: Parts, n: usize) -> Result<Parts> {
    let dims = at.dims(half.re);
    let last = dims.len() - 1;
    if n == dims[last] {
        return Ok(half);
    }
    let rest = each(half, |x| {
        let rest = at.slice(x, last, 1, n - dims[last] + 1)?;
        at.add(Reverse { dimensions: vec![last] }, [rest])
    })?;
    let rest = Parts { re: rest.re, im: at.unary(UnaryOp::Negate, rest.im)? };
    Ok(Parts { re: at.concatenate(&[half.re, rest.re], last)?, im: at.concatenate(&[half.im, rest.im], last)? })
}
