//! Schur forms of general matrices: upper triangular, with 2 by 2 diagonal blocks for the pairs of complex eigenvalues
//! of real matrices.

mod complex;
mod real;

use super::hessenberg::{product, reduce};
use super::matrix::{Matrix, array, elements, for_field, matrices, square_size};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar};

/// Maximal number of iterations for each eigenvalue; two or three are usual.
const MOST_STEPS: usize = 60;

/// Number of iterations without convergence before an exceptional shift.
const EXCEPTIONAL: usize = 10;

/// Schur form `a = z t z^H` with a unitary `z`.
pub(super) struct Schur<T> {
    pub t: Matrix<T>,
    pub z: Matrix<T>,
    /// Eigenvalues in the order of the diagonal. In a complex pair, the one with the positive imaginary part comes
    /// first.
    pub values: Vec<(f64, f64)>,
    /// Number of leading eigenvalues that were not found; 0 on success.
    pub failed: usize,
}

/// A number field with an iteration from Hessenberg to Schur form.
pub(super) trait SchurField: Field {
    /// Makes `h` triangular or block triangular by similarity transformations, which are accumulated in `z`. Returns
    /// the number of leading rows that did not converge.
    fn iterate(h: &mut Matrix<Self>, z: &mut Matrix<Self>) -> usize;

    /// Returns the eigenvalues of a Schur form.
    fn values(t: &Matrix<Self>) -> Vec<(f64, f64)>;
}

/// Returns the Schur form of a square matrix; NaN if the matrix is not finite.
pub(super) fn decompose<T: SchurField>(a: &Matrix<T>) -> Schur<T> {
    let n = a.rows;
    let greatest =
        a.elements.iter().map(|x| x.modulus()).fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
    if !greatest.is_finite() {
        let t = Matrix::from_fn(n, n, |i, j| if i > j { T::ZERO } else { T::NAN });
        let z = Matrix::from_fn(n, n, |_, _| T::NAN);
        return Schur { values: T::values(&t), t, z, failed: 0 };
    }
    // Squares of elements must neither overflow nor underflow. Scaling by a power of two is exact, and its inverse is
    // finite.
    let scale = if greatest == 0.0 { 1.0 } else { greatest.log2().floor().clamp(-1000.0, 1000.0).exp2() };
    let mut t = Matrix::from_fn(n, n, |i, j| a.at(i, j).times(T::from_real(1.0 / scale)));
    let scales = reduce(&mut t, 0..n);
    let mut z = product(&t, &scales);
    for (i, j) in (0..n).flat_map(|i| (0..i.saturating_sub(1)).map(move |j| (i, j))) {
        *t.at_mut(i, j) = T::ZERO;
    }
    let failed = T::iterate(&mut t, &mut z);
    t.elements.iter_mut().for_each(|x| *x = x.times(T::from_real(scale)));
    Schur { values: T::values(&t), t, z, failed }
}

/// Returns the first row of the unreduced block of `h` that ends at row `end`: a block without a zero on its
/// subdiagonal. Sets the negligible subdiagonal element before the block to 0.
fn undivided<T: Field>(h: &mut Matrix<T>, end: usize) -> usize {
    for l in (1..=end).rev() {
        let near = h.at(l, l).modulus() + h.at(l - 1, l - 1).modulus();
        // The greatest element of the scaled matrix has magnitude 1.
        let scale = if near == 0.0 { 1.0 } else { near };
        if h.at(l, l - 1).modulus() <= f64::EPSILON * scale {
            *h.at_mut(l, l - 1) = T::ZERO;
            return l;
        }
    }
    0
}

/// LAPACK's `gees`: `(t, z, eigenvalues, number of selected eigenvalues, info)`. For real matrices, the real and the
/// imaginary parts of the eigenvalues are separate results. If no vectors are requested, `z` is 0.
pub(super) fn gees(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    if call.attributes()?.integer("sort")? != i64::from(b'N') {
        return Err(Error::unimplemented(
            "lapack_*gees_ffi with sorted eigenvalues is not supported, since a call cannot pass the selection function",
        ));
    }
    for_field!(a, gees_in(call, a))
}

fn gees_in<T: SchurField>(call: &CustomCallContext<'_>, a: &Literal) -> Result<Literal> {
    let has_vectors = super::flags::is_letter(&call.attributes()?, "mode", 'V', 'N')?;
    square_size("the operand", a)?;
    let forms: Vec<Schur<T>> = matrices::<T>("the operand", a)?.iter().map(decompose).collect();
    let info: Vec<Scalar> = forms.iter().map(|form| Scalar::Signed(form.failed as i64)).collect();
    let values = forms.iter().flat_map(|form| form.values.iter().copied()).collect::<Vec<_>>();
    let (t, z): (Vec<_>, Vec<_>) = forms.into_iter().map(|form| (form.t, form.z)).unzip();
    let z = if has_vectors { elements(&z) } else { vec![T::ZERO.to_element(); elements(&z).len()] };
    let mut parts = vec![elements(&t), z];
    parts.extend(eigenvalue_parts(a, &values));
    parts.extend([vec![Scalar::Signed(0); info.len()], info]);
    let arrays = parts.iter().enumerate().map(|(number, part)| array(call, number, part));
    Ok(Literal::tuple(arrays.collect::<Result<_>>()?))
}

/// Returns eigenvalues in LAPACK's form: complex numbers, or real and imaginary parts for real matrices.
pub(super) fn eigenvalue_parts(a: &Literal, values: &[(f64, f64)]) -> Vec<Vec<Scalar>> {
    if a.shape().element_type().is_some_and(crate::ElementType::is_complex) {
        return vec![values.iter().map(|value| value.to_element()).collect()];
    }
    let part = |of: fn(&(f64, f64)) -> f64| values.iter().map(|value| Scalar::Float(of(value))).collect();
    vec![part(|value| value.0), part(|value| value.1)]
}
