//! Orthogonal decompositions by Householder reflections (A. Householder, 1958), stored as in LAPACK.

use std::ops::Range;

use super::matrix::{Matrix, array, elements, for_field, matrices, sizes};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result};

/// Returns `(a, tau)`. The upper triangle of `a` is R. Below it are the vectors of the reflections `1 - tau v v^H`,
/// without their first element, which is 1.
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

/// Returns the first columns of the product of the reflections in operands 0 and 1. The number of columns is operand
/// 0's.
pub(super) fn product(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a, scales] = &operands[..] else { return Err(Error::invalid_argument("it takes two operands")) };
    for_field!(a, product_in(call, a, scales))
}

fn product_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal, scales: &Literal) -> Result<Literal> {
    let mut matrices = matrices::<T>("operand 0", a)?;
    for (matrix, scales) in matrices.iter_mut().zip(scales_of(a, scales)?) {
        *matrix = columns_of_product(matrix, &scales);
    }
    array(call, 0, &elements(&matrices))
}

/// Returns the scales of the reflections in each matrix of `a`. There may be fewer scales than columns.
fn scales_of<T: Field>(a: &Literal, scales: &Literal) -> Result<Vec<Vec<T>>> {
    let (matrices, rows, columns) = sizes("operand 0", a.shape().expect_array()?)?;
    let shape = scales.shape().expect_array()?;
    let (count, most) = (shape.dims().last().copied().unwrap_or(0), rows.min(columns));
    if count > most || shape.element_count() != count * matrices {
        let message = format!("operand 1 must have at most {most} scales for each matrix, it is {shape}");
        return Err(Error::invalid_argument(message));
    }
    let element = |at: usize| T::from_element(scales.get(at));
    Ok((0..matrices).map(|k| (k * count..(k + 1) * count).map(element).collect()).collect())
}

/// LAPACK's `ormqr` and `unmqr`: multiplies operand 2, from the left or the right, by the product of the reflections in
/// operands 0 and 1, or by its adjoint.
pub(super) fn multiply(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a, scales, c] = &operands[..] else { return Err(Error::invalid_argument("it takes three operands")) };
    for_field!(a, multiply_in(call, a, scales, c))
}

fn multiply_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal, scales: &Literal, c: &Literal) -> Result<Literal> {
    let attributes = call.attributes()?;
    let (left, adjoint) = (attributes.boolean("left")?, attributes.boolean("transpose")?);
    let (vectors, mut products) = (matrices::<T>("operand 0", a)?, matrices::<T>("operand 2", c)?);
    let (count, rows, columns) = sizes("operand 2", c.shape().expect_array()?)?;
    let length = if left { rows } else { columns };
    if count != vectors.len() || vectors.iter().any(|v| v.rows != length) {
        let message = format!("operand 0 must hold vectors of {length} elements for operand 2, it is {}", a.shape());
        return Err(Error::invalid_argument(message));
    }
    for ((product, a), scales) in products.iter_mut().zip(&vectors).zip(scales_of::<T>(a, scales)?) {
        // The last reflection of a product is the first to be applied from the left.
        let mut order: Vec<usize> = (0..scales.len()).collect();
        if left != adjoint {
            order.reverse();
        }
        for k in order {
            let (vector, scale) = (vector(a, k..a.rows, k), if adjoint { scales[k].conjugate() } else { scales[k] });
            if left {
                reflect(product, k, &vector, scale, 0..columns);
            } else {
                reflect_rows(product, 0..rows, k, &vector, scale);
            }
        }
    }
    array(call, 0, &elements(&products))
}

/// Replaces a matrix by R and the vectors of the reflections; returns the scales.
pub(super) fn factor<T: Field>(a: &mut Matrix<T>) -> Vec<T> {
    (0..a.rows.min(a.columns)).map(|k| factor_column(a, k)).collect()
}

/// Performs one step of [`factor`], which reduces column `k`; returns its scale.
pub(super) fn factor_column<T: Field>(a: &mut Matrix<T>, k: usize) -> T {
    let rows = k..a.rows;
    let scale = make_reflection(a, rows.clone(), k);
    let vector = vector(a, rows, k);
    // R is the result of applying the adjoints of the reflections to the matrix.
    let columns = k + 1..a.columns;
    reflect(a, k, &vector, scale.conjugate(), columns);
    scale
}

/// Replaces `rows` of a column by `beta`, which is real, and the vector of a reflection. The adjoint of `1 - tau v v^H`
/// maps the column to `beta e`. Returns `tau`; it is 0, and the column unchanged, if the first element is real and the
/// others are zero.
pub(super) fn make_reflection<T: Field>(a: &mut Matrix<T>, rows: Range<usize>, column: usize) -> T {
    let alpha = a.at(rows.start, column);
    let below = (rows.start + 1..rows.end).map(|i| a.at(i, column).modulus()).fold(0.0, f64::hypot);
    let imaginary = alpha.minus(T::from_real(alpha.real())).modulus();
    if below == 0.0 && imaginary == 0.0 {
        return T::ZERO;
    }
    let norm = below.hypot(alpha.modulus());
    let beta = T::from_real(if alpha.real() < 0.0 { norm } else { -norm });
    let pivot = alpha.minus(beta);
    for i in rows.start + 1..rows.end {
        *a.at_mut(i, column) = a.at(i, column).divided_by(pivot);
    }
    *a.at_mut(rows.start, column) = beta;
    beta.minus(alpha).divided_by(beta)
}

/// Returns the vector of a reflection stored in `rows` of a column, including its first element 1, which is not stored.
pub(super) fn vector<T: Field>(a: &Matrix<T>, rows: Range<usize>, column: usize) -> Vec<T> {
    rows.clone().map(|i| if i == rows.start { T::from_real(1.0) } else { a.at(i, column) }).collect()
}

/// Applies `1 - tau v v^H` from the left to `columns`, in the rows from `top` on.
pub(super) fn reflect<T: Field>(a: &mut Matrix<T>, top: usize, v: &[T], tau: T, columns: Range<usize>) {
    for j in columns {
        // minus v^H a
        let dot = v.iter().enumerate().fold(T::ZERO, |sum, (i, v)| sum.minus_product(v.conjugate(), a.at(top + i, j)));
        let factor = T::ZERO.minus_product(tau, dot);
        for (i, &v) in v.iter().enumerate() {
            *a.at_mut(top + i, j) = a.at(top + i, j).minus_product(factor, v);
        }
    }
}

/// Applies `1 - tau v v^H` from the right to `rows`, in the columns from `first` on.
pub(super) fn reflect_rows<T: Field>(a: &mut Matrix<T>, rows: Range<usize>, first: usize, v: &[T], tau: T) {
    for i in rows {
        let dot = v.iter().enumerate().fold(T::ZERO, |sum, (j, &v)| sum.plus(a.at(i, first + j).times(v)));
        let factor = tau.times(dot);
        for (j, &v) in v.iter().enumerate() {
            *a.at_mut(i, first + j) = a.at(i, first + j).minus_product(factor, v.conjugate());
        }
    }
}

/// Returns the first columns of the product of the reflections; the number of columns is that of `a`.
pub(super) fn columns_of_product<T: Field>(a: &Matrix<T>, scales: &[T]) -> Matrix<T> {
    let mut q = Matrix::from_fn(a.rows, a.columns, |i, j| if i == j { T::from_real(1.0) } else { T::ZERO });
    for (k, &scale) in scales.iter().enumerate().rev() {
        reflect(&mut q, k, &vector(a, k..a.rows, k), scale, 0..a.columns);
    }
    q
}
