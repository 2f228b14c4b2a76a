//! Singular values by one-sided Jacobi rotations of columns (M. Hestenes, 1958).

use super::eigen::{Rotation, square};
use super::householder::{columns_of_product, factor};
use super::matrix::{Matrix, array, elements, for_field, matrices, result_arrays};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar, Shape};

/// Maximal number of sweeps over all pairs of columns; far fewer are needed.
const MOST_SWEEPS: usize = 60;

/// LAPACK's `gesdd`: `(operand, singular values descending, u, v^H, info)`. The result shape determines the number of
/// columns of `u` and of rows of `v^H`. With mode `N` both are zero.
///
/// If a matrix is not finite, its singular values, `u` and `v^H` are zero, and `info` is -4.
pub(super) fn gesdd(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    decompose_all(call, &operands, NotFinite { value: 0.0, info: -4 })
}

/// LAPACK's `gesvd`: like [`gesdd`], but if a matrix is not finite, its singular values, `u` and `v^H` are NaN, and
/// `info` is 0.
pub(super) fn gesvd(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    decompose_all(call, &operands, NotFinite { value: f64::NAN, info: 0 })
}

/// Results of a routine for a matrix that is not finite.
#[derive(Clone, Copy)]
struct NotFinite {
    value: f64,
    info: i64,
}

fn decompose_all(call: &CustomCallContext<'_>, operands: &[Literal], not_finite: NotFinite) -> Result<Literal> {
    let [a] = operands else { return Err(Error::invalid_argument("it takes one operand")) };
    let has_vectors = call.attributes()?.integer("mode")? != i64::from(b'N');
    for_field!(a, decompose_in(call, a, has_vectors, not_finite))
}

fn decompose_in<T: Field>(
    call: &CustomCallContext<'_>,
    a: &Literal,
    has_vectors: bool,
    not_finite: NotFinite,
) -> Result<Literal> {
    let shapes = result_arrays(call);
    let size = |number: usize, back: usize| {
        let dims = shapes.get(number).copied().and_then(Shape::as_array).map(|shape| shape.dims());
        dims.and_then(|dims| dims.get(dims.len().checked_sub(back)?)).copied()
    };
    let (Some(columns), Some(rows)) = (size(2, 1), size(3, 2)) else {
        return Err(Error::invalid_argument(format!("the result must have u and v^H, it is {}", call.result_shape())));
    };
    let (mut left, mut values, mut right, mut info) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for matrix in matrices::<T>("the operand", a)? {
        if !matrix.elements.iter().all(|x| x.modulus().is_finite()) {
            let filled = |rows, columns| Matrix::from_fn(rows, columns, |_, _| T::from_real(not_finite.value));
            values.extend(vec![Scalar::Float(not_finite.value); matrix.rows.min(matrix.columns)]);
            left.push(filled(matrix.rows, columns));
            right.push(filled(rows, matrix.columns));
            info.push(Scalar::Signed(not_finite.info));
            continue;
        }
        info.push(Scalar::Signed(0));
        let (u, sizes, v) = decompose(&matrix);
        values.extend(sizes.into_iter().map(Scalar::Float));
        let (u, v) = (completed(&u, columns)?, completed(&v, rows)?);
        let zero = |m: Matrix<T>| if has_vectors { m } else { Matrix::from_fn(m.rows, m.columns, |_, _| T::ZERO) };
        left.push(zero(u));
        right.push(zero(v.adjoint()));
    }
    let parts = [elements(&matrices::<T>("the operand", a)?), values, elements(&left), elements(&right), info];
    let arrays = parts.iter().enumerate().map(|(number, part)| array(call, number, part));
    Ok(Literal::tuple(arrays.collect::<Result<_>>()?))
}

/// Returns `(u, s, v)` with `a = u s v^H`. `u` and `v` have min(rows, columns) columns. The columns of zero singular
/// values are omitted in `u`, or in `v` if `a` has fewer rows than columns.
fn decompose<T: Field>(a: &Matrix<T>) -> (Matrix<T>, Vec<f64>, Matrix<T>) {
    if a.rows < a.columns {
        let (u, values, v) = decompose(&a.adjoint());
        return (v, values, u);
    }
    let n = a.columns;
    let (mut w, mut v) = (a.clone(), Matrix::identity(n));
    let mut sweeps = 0;
    while sweep(&mut w, &mut v) && sweeps < MOST_SWEEPS {
        sweeps += 1;
    }
    let sizes: Vec<f64> = (0..n).map(|j| inner(&w, j, j).real().sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| sizes[j].total_cmp(&sizes[i]));
    let u = Matrix::from_fn(a.rows, n, |i, j| w.at(i, order[j]).divided_by(T::from_real(sizes[order[j]])));
    let v = Matrix::from_fn(n, n, |i, j| v.at(i, order[j]));
    // Columns of size 0 have no direction; any columns orthogonal to the others are valid.
    let least = sizes.iter().fold(0.0, |a: f64, &b| a.max(b)) * f64::EPSILON * f64::EPSILON;
    let known = order.iter().take_while(|&&j| sizes[j] > least || sizes[j].is_nan()).count();
    let u = Matrix::from_fn(u.rows, known, |i, j| u.at(i, j));
    (u, order.iter().map(|&j| sizes[j]).collect(), v)
}

/// Rotates every pair of columns that are not orthogonal, so that they become orthogonal. Returns whether there was
/// such a pair.
fn sweep<T: Field>(w: &mut Matrix<T>, v: &mut Matrix<T>) -> bool {
    let mut any = false;
    for q in 1..w.columns {
        for p in 0..q {
            let (off, first, second) = (inner(w, p, q), inner(w, p, p).real(), inner(w, q, q).real());
            if square(off) > f64::EPSILON * f64::EPSILON * first * second {
                let rotation = Rotation::new(off, first, second);
                rotation.turn_columns(w, p, q);
                rotation.turn_columns(v, p, q);
                any = true;
            }
        }
    }
    any
}

/// Returns the inner product of column `p` (conjugated) and column `q`.
fn inner<T: Field>(w: &Matrix<T>, p: usize, q: usize) -> T {
    let negative = (0..w.rows).fold(T::ZERO, |sum, i| sum.minus_product(w.at(i, p).conjugate(), w.at(i, q)));
    T::ZERO.minus_product(negative, T::from_real(1.0))
}

/// Extends orthonormal columns by orthogonal ones to `count` columns.
fn completed<T: Field>(u: &Matrix<T>, count: usize) -> Result<Matrix<T>> {
    if count > u.rows {
        let message = format!("there cannot be {count} orthogonal vectors of {} elements", u.rows);
        return Err(Error::invalid_argument(message));
    }
    let known = u.columns.min(count);
    let mut reflections = Matrix::from_fn(u.rows, count, |i, j| if j < known { u.at(i, j) } else { T::ZERO });
    let scales = factor(&mut reflections);
    let q = columns_of_product(&reflections, &scales[..known]);
    Ok(Matrix::from_fn(u.rows, count, |i, j| if j < known { u.at(i, j) } else { q.at(i, j) }))
}
