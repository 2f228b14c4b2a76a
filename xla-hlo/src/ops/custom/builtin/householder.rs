//! Orthogonal decompositions by reflections (A. Householder, 1958), stored as LAPACK stores them.

use std::ops::Range;

use super::matrix::{Matrix, array, elements, for_field, matrices, sizes};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result};

/// `(a, tau)`: the upper triangle of `a` is R; below it stand the vectors of the reflections `1 - tau v v^H`, whose
/// first element 1 is left out.
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
    for (matrix, scales) in matrices.iter_mut().zip(scales_of(a, scales)?) {
        *matrix = columns_of_product(matrix, &scales);
    }
    array(call, 0, &elements(&matrices))
}

/// The scales of the reflections in each matrix of `a`, of which there may be fewer than it has columns.
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

/// LAPACK's `ormqr` and `unmqr`: operand 2 multiplied, from the left or the right, by the product of the reflections
/// that operands 0 and 1 hold, or by its adjoint.
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
        // The last reflection is next to what the product multiplies from the left.
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

/// Replaces a matrix by R and the vectors; returns the scales.
pub(super) fn factor<T: Field>(a: &mut Matrix<T>) -> Vec<T> {
    (0..a.rows.min(a.columns)).map(|k| factor_column(a, k)).collect()
}

/// One step of [`factor`], which brings column `k` into its form; returns its scale.
pub(super) fn factor_column<T: Field>(a: &mut Matrix<T>, k: usize) -> T {
    let rows = k..a.rows;
    let scale = make_reflection(a, rows.clone(), k);
    let vector = vector(a, rows, k);
    // R is what the adjoints of the reflections make of the matrix.
    let columns = k + 1..a.columns;
    reflect(a, k, &vector, scale.conjugate(), columns);
    scale
}

/// Turns those rows of a column into `beta` and a vector, where `1 - tau v v^H`, adjoint, takes the column to `beta e`.
/// `beta` is real; returns `tau`. A column that is zero below (and real) stays, with `tau` 0.
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

/// The vector of a reflection in those rows of a column, whose first element 1 is left out there.
pub(super) fn vector<T: Field>(a: &Matrix<T>, rows: Range<usize>, column: usize) -> Vec<T> {
    rows.clone().map(|i| if i == rows.start { T::from_real(1.0) } else { a.at(i, column) }).collect()
}

/// Applies `1 - tau v v^H` from the left to those columns, in the rows from `top` on.
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

/// Applies `1 - tau v v^H` from the right to those rows, in the columns from `first` on.
pub(super) fn reflect_rows<T: Field>(a: &mut Matrix<T>, rows: Range<usize>, first: usize, v: &[T], tau: T) {
    for i in rows {
        let dot = v.iter().enumerate().fold(T::ZERO, |sum, (j, &v)| sum.plus(a.at(i, first + j).times(v)));
        let factor = tau.times(dot);
        for (j, &v) in v.iter().enumerate() {
            *a.at_mut(i, first + j) = a.at(i, first + j).minus_product(factor, v.conjugate());
        }
    }
}

/// The first columns of the product of the reflections, as many as the matrix that holds them has.
pub(super) fn columns_of_product<T: Field>(a: &Matrix<T>, scales: &[T]) -> Matrix<T> {
    let mut q = Matrix::from_fn(a.rows, a.columns, |i, j| if i == j { T::from_real(1.0) } else { T::ZERO });
    for (k, &scale) in scales.iter().enumerate().rev() {
        reflect(&mut q, k, &vector(a, k..a.rows, k), scale, 0..a.columns);
    }
    q
}
