//! Orthogonal decompositions by reflections (A. Householder, 1958), stored as LAPACK stores them.

use super::matrix::{Matrix, array, elements, for_field, matrices};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar};

/// `(a, tau)`: the upper triangle of `a` is R; below it stand the vectors of the reflections `1 - tau v v^H`, whose first
/// element 1 is left out.
pub(super) fn qr(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    for_field!(a, qr_in(call, a))
}

fn qr_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal) -> Result<Literal> {
    let mut matrices = matrices::<T>("the operand", a)?;
    let mut scales = Vec::new();
    for matrix in &mut matrices {
        scales.extend(factor(matrix).into_iter().map(T::to_element));
    }
    Ok(Literal::tuple(vec![array(call, 0, &elements(&matrices))?, array(call, 1, &scales)?]))
}

/// The first columns of the product of the reflections that operands 0 and 1 hold, as many as operand 0 has.
pub(super) fn product(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a, scales] = &operands[..] else { return Err(Error::invalid_argument("it takes two operands")) };
    for_field!(a, product_in(call, a, scales))
}

fn product_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal, scales: &Literal) -> Result<Literal> {
    let mut matrices = matrices::<T>("operand 0", a)?;
    let count = scales.shape().expect_array()?.dims().last().copied().unwrap_or(0);
    let total = scales.array_shape().element_count();
    let most = matrices.first().map_or(count, |m| m.rows.min(m.columns));
    if count > most || total != count * matrices.len() {
        let message = format!("operand 1 must have at most {most} scales for each matrix, it is {}", scales.shape());
        return Err(Error::invalid_argument(message));
    }
    for (k, matrix) in matrices.iter_mut().enumerate() {
        let scales: Vec<T> = (0..count).map(|i| T::from_element(scales.get(k * count + i))).collect();
        *matrix = columns_of_product(matrix, &scales);
    }
    array(call, 0, &elements(&matrices))
}

/// Replaces a matrix by R and the vectors; gives the scales.
pub(super) fn factor<T: Field>(a: &mut Matrix<T>) -> Vec<T> {
    let mut scales = Vec::new();
    for k in 0..a.rows.min(a.columns) {
        let scale = make_reflection(a, k);
        scales.push(scale);
        let vector = vector(a, k);
        // R is what the adjoints of the reflections make of the matrix.
        reflect(a, &vector, scale.conjugate(), k + 1);
    }
    scales
}

/// Turns column `k` from row `k` on into `beta` and a vector, where `1 - tau v v^H`, adjoint, takes the column to `beta e`.
/// `beta` is real; gives `tau`. A column that is zero below (and real) stays, with `tau` 0.
fn make_reflection<T: Field>(a: &mut Matrix<T>, k: usize) -> T {
    let alpha = a.at(k, k);
    let below = (k + 1..a.rows).map(|i| modulus(a.at(i, k))).fold(0.0, f64::hypot);
    let imaginary = modulus(alpha.minus_product(T::from_real(alpha.real()), T::from_real(1.0)));
    if below == 0.0 && imaginary == 0.0 {
        return T::ZERO;
    }
    let norm = below.hypot(modulus(alpha));
    let beta = T::from_real(if alpha.real() < 0.0 { norm } else { -norm });
    let pivot = alpha.minus_product(beta, T::from_real(1.0));
    for i in k + 1..a.rows {
        *a.at_mut(i, k) = a.at(i, k).divided_by(pivot);
    }
    *a.at_mut(k, k) = beta;
    // (beta - alpha) / beta
    T::ZERO.minus_product(pivot, T::from_real(1.0)).divided_by(beta)
}

fn modulus<T: Field>(x: T) -> f64 {
    match x.to_element() {
        Scalar::Complex(re, im) => re.hypot(im),
        _ => x.real().abs(),
    }
}

/// The vector of reflection `k`, from row `k` on.
fn vector<T: Field>(a: &Matrix<T>, k: usize) -> Vec<T> {
    (k..a.rows).map(|i| if i == k { T::from_real(1.0) } else { a.at(i, k) }).collect()
}

/// Applies `1 - tau v v^H` to the columns from `first` on, in the last rows.
fn reflect<T: Field>(a: &mut Matrix<T>, v: &[T], tau: T, first: usize) {
    let top = a.rows - v.len();
    for j in first..a.columns {
        // minus v^H a
        let dot = v.iter().enumerate().fold(T::ZERO, |sum, (i, v)| sum.minus_product(v.conjugate(), a.at(top + i, j)));
        let factor = T::ZERO.minus_product(tau, dot);
        for (i, &v) in v.iter().enumerate() {
            *a.at_mut(top + i, j) = a.at(top + i, j).minus_product(factor, v);
        }
    }
}

/// The first columns of the product of the reflections, as many as the matrix that holds them has.
pub(super) fn columns_of_product<T: Field>(a: &Matrix<T>, scales: &[T]) -> Matrix<T> {
    let mut q = Matrix::from_fn(a.rows, a.columns, |i, j| if i == j { T::from_real(1.0) } else { T::ZERO });
    for (k, &scale) in scales.iter().enumerate().rev() {
        reflect(&mut q, &vector(a, k), scale, 0);
    }
    q
}
