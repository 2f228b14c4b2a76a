//! Matrices in double precision, and batches of them as literals.

use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{ArrayShape, Error, Literal, Result, Scalar, Shape};

/// A row-major matrix.
#[derive(Clone)]
pub(super) struct Matrix<T> {
    pub rows: usize,
    pub columns: usize,
    pub elements: Vec<T>,
}

impl<T: Field> Matrix<T> {
    pub(super) fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> T) -> Matrix<T> {
        let elements = (0..rows * columns).map(|at| f(at / columns, at % columns)).collect();
        Matrix { rows, columns, elements }
    }

    pub(super) fn identity(n: usize) -> Matrix<T> {
        Matrix::from_fn(n, n, |i, j| if i == j { T::from_real(1.0) } else { T::ZERO })
    }

    /// Returns the conjugate transpose.
    pub(super) fn adjoint(&self) -> Matrix<T> {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conjugate())
    }

    pub(super) fn at(&self, i: usize, j: usize) -> T {
        self.elements[i * self.columns + j]
    }

    pub(super) fn at_mut(&mut self, i: usize, j: usize) -> &mut T {
        &mut self.elements[i * self.columns + j]
    }
}

/// Returns the number of matrices in an array, and their numbers of rows and columns.
pub(super) fn sizes(what: &str, shape: &ArrayShape) -> Result<(usize, usize, usize)> {
    let ty = shape.element_type();
    match shape.dims() {
        &[ref batch @ .., rows, columns] if ty.is_float() || ty.is_complex() => {
            Ok((batch.iter().product(), rows, columns))
        }
        _ => {
            Err(Error::invalid_argument(format!("{what} must be matrices of floats or complex numbers, it is {shape}")))
        }
    }
}

/// Returns the number of rows of the square matrices in an array.
pub(super) fn square_size(what: &str, array: &Literal) -> Result<usize> {
    let shape = array.shape().expect_array()?;
    match sizes(what, shape)? {
        (_, rows, columns) if rows == columns => Ok(rows),
        _ => Err(Error::invalid_argument(format!("{what} must be square matrices, it is {shape}"))),
    }
}

/// Returns the matrices in an array.
pub(super) fn matrices<T: Field>(what: &str, array: &Literal) -> Result<Vec<Matrix<T>>> {
    let (count, rows, columns) = sizes(what, array.shape().expect_array()?)?;
    let size = rows * columns;
    let matrix =
        |k: usize| Matrix::from_fn(rows, columns, |i, j| T::from_element(array.get(k * size + i * columns + j)));
    Ok((0..count).map(matrix).collect())
}

/// Returns the shapes of the arrays of a result, in order.
pub(super) fn result_arrays<'a>(call: &CustomCallContext<'a>) -> Vec<&'a Shape> {
    call.result_shape().leaves().into_iter().map(|(_, leaf)| leaf).collect()
}

/// Returns result array `number`, filled with the given elements.
pub(super) fn array(call: &CustomCallContext<'_>, number: usize, elements: &[Scalar]) -> Result<Literal> {
    let shapes = result_arrays(call);
    let shape = shapes.get(number).copied().and_then(Shape::as_array);
    let fits = shape.filter(|shape| shape.element_count() == elements.len());
    let shape = fits.ok_or_else(|| {
        Error::invalid_argument(format!(
            "result {number} must be an array of {} elements; the result is {}",
            elements.len(),
            call.result_shape()
        ))
    })?;
    let ty = shape.element_type();
    Literal::from_fn(shape, |i| converted(elements[i], ty))
}

/// Converts an element to the kind of a type; real types take the real part.
fn converted(element: Scalar, ty: crate::ElementType) -> Scalar {
    match (element, ty.kind()) {
        (Scalar::Complex(re, _), crate::ElementKind::Float) => Scalar::Float(re),
        (Scalar::Float(re), crate::ElementKind::Complex) => Scalar::Complex(re, 0.0),
        (Scalar::Signed(n), _) => Scalar::from_i64(ty, n),
        (element, _) => element,
    }
}

/// Returns the elements of several matrices, concatenated.
pub(super) fn elements<T: Field>(matrices: &[Matrix<T>]) -> Vec<Scalar> {
    matrices.iter().flat_map(|m| m.elements.iter().map(|x| x.to_element())).collect()
}

/// Calls a generic function for the number field (real or complex) of an operand.
macro_rules! for_field {
    ($operand:expr, $function:ident ( $($argument:expr),* )) => {
        if $operand.shape().element_type().is_some_and(crate::ElementType::is_complex) {
            $function::<(f64, f64)>($($argument),*)
        } else {
            $function::<f64>($($argument),*)
        }
    };
}
pub(super) use for_field;
