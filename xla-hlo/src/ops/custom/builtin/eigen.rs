//! Eigenvalues of symmetric and Hermitian matrices by Jacobi rotations (C. Jacobi, 1846).

use super::matrix::{Matrix, array, elements, for_field, matrices};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar};

/// Maximal number of sweeps over all pairs of rows. Convergence is quadratic, so that far fewer are needed.
const MOST_SWEEPS: usize = 60;

/// Returns `(eigenvectors as columns, eigenvalues)`, ascending. Reads the upper triangle if the configuration starts
/// with `0`, otherwise the lower one.
pub(super) fn eigh(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    let lower = !call.config().trim_ascii_start().starts_with(b"0");
    let (vectors, values) = for_field!(a, decompose_all(a, lower))?;
    Ok(Literal::tuple(vec![array(call, 0, &vectors)?, array(call, 1, &values)?]))
}

/// Returns the elements of the eigenvectors and of the eigenvalues of all matrices of an array.
pub(super) fn decompose_all<T: Field>(a: &Literal, lower: bool) -> Result<(Vec<Scalar>, Vec<Scalar>)> {
    let (mut vectors, mut values) = (Vec::new(), Vec::new());
    for matrix in matrices::<T>("the operand", a)? {
        if matrix.rows != matrix.columns {
            return Err(Error::invalid_argument(format!("the operand must have square matrices, it is {}", a.shape())));
        }
        let (v, w) = decompose(&matrix, lower);
        vectors.push(v);
        values.extend(w.into_iter().map(Scalar::Float));
    }
    Ok((elements(&vectors), values))
}

/// Returns eigenvectors as columns and eigenvalues, ascending; NaN if the matrix is not finite.
fn decompose<T: Field>(a: &Matrix<T>, lower: bool) -> (Matrix<T>, Vec<f64>) {
    let n = a.rows;
    let mut a = Matrix::from_fn(n, n, |i, j| match (i == j, (i > j) == lower) {
        (true, _) => T::from_real(a.at(i, i).real()),
        (false, true) => a.at(i, j),
        (false, false) => a.at(j, i).conjugate(),
    });
    let mut v = Matrix::identity(n);
    for _ in 0..MOST_SWEEPS {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| square(a.at(i, j))).sum();
        let scale: f64 = (0..n).map(|i| square(a.at(i, i))).sum();
        if off <= f64::EPSILON * f64::EPSILON * scale || !off.is_finite() {
            break;
        }
        for q in 1..n {
            (0..q).for_each(|p| rotate(&mut a, &mut v, p, q));
        }
    }
    let is_finite = a.elements.iter().all(|&x| square(x).is_finite());
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a.at(i, i).real().total_cmp(&a.at(j, j).real()));
    let value = |x: f64| if is_finite { x } else { f64::NAN };
    let vectors = Matrix::from_fn(n, n, |i, j| if is_finite { v.at(i, order[j]) } else { T::NAN });
    (vectors, order.iter().map(|&i| value(a.at(i, i).real())).collect())
}

/// Returns the square of the magnitude.
pub(super) fn square<T: Field>(x: T) -> f64 {
    match x.to_element() {
        Scalar::Complex(re, im) => re * re + im * im,
        _ => x.real() * x.real(),
    }
}

/// Makes elements `p, q` and `q, p` zero by a rotation of two columns and two rows, and accumulates the rotation in
/// `v`.
fn rotate<T: Field>(a: &mut Matrix<T>, v: &mut Matrix<T>, p: usize, q: usize) {
    let off = a.at(p, q);
    if square(off) == 0.0 {
        return;
    }
    let rotation = Rotation::new(off, a.at(p, p).real(), a.at(q, q).real());
    rotation.turn_columns(a, p, q);
    rotation.turn_columns(v, p, q);
    rotation.turn_rows(a, p, q);
    (*a.at_mut(p, q), *a.at_mut(q, p)) = (T::ZERO, T::ZERO);
}

/// A rotation of two columns or rows.
#[derive(Clone, Copy)]
pub(super) struct Rotation<T> {
    cosine: T,
    sine: T,
}

impl<T: Field> Rotation<T> {
    /// Returns the rotation that diagonalizes the 2 by 2 Hermitian matrix with diagonal elements `first` and `second`
    /// and upper element `off`, which must not be 0.
    pub(super) fn new(off: T, first: f64, second: f64) -> Rotation<T> {
        let size = square(off).sqrt();
        // The phase makes `off` real; the angle is then that of a symmetric matrix.
        let phase = off.divided_by(T::from_real(size));
        let theta = (second - first) / (2.0 * size);
        let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        Rotation { cosine: T::from_real(cosine), sine: times(phase, tangent * cosine) }
    }

    /// Multiplies by the rotation on the right.
    pub(super) fn turn_columns(&self, m: &mut Matrix<T>, p: usize, q: usize) {
        for i in 0..m.rows {
            let (x, y) = (m.at(i, p), m.at(i, q));
            *m.at_mut(i, p) = combination(x, self.cosine, y, times(self.sine.conjugate(), -1.0));
            *m.at_mut(i, q) = combination(x, self.sine, y, self.cosine);
        }
    }

    /// Multiplies by the adjoint of the rotation on the left.
    fn turn_rows(&self, m: &mut Matrix<T>, p: usize, q: usize) {
        for j in 0..m.columns {
            let (x, y) = (m.at(p, j), m.at(q, j));
            *m.at_mut(p, j) = combination(x, self.cosine, y, times(self.sine, -1.0));
            *m.at_mut(q, j) = combination(x, self.sine.conjugate(), y, self.cosine);
        }
    }
}

/// Returns `x a + y b`.
fn combination<T: Field>(x: T, a: T, y: T, b: T) -> T {
    let negative = T::ZERO.minus_product(x, a).minus_product(y, b);
    T::ZERO.minus_product(negative, T::from_real(1.0))
}

fn times<T: Field>(x: T, factor: f64) -> T {
    T::ZERO.minus_product(x, T::from_real(-factor))
}
