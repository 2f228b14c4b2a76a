//! Reduction to similar Hessenberg or tridiagonal matrices by Householder reflections (Golub and Van Loan, algorithms
//! 7.4.2 and 8.3.1).

use std::ops::Range;

use super::flags::is_letter;
use super::householder::{make_reflection, reflect, reflect_rows, vector};
use super::matrix::{Matrix, array, elements, for_field, matrices, square_size};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar};

/// LAPACK's `gehrd`: `(h with the vectors of the reflections below it, tau, info)`. Only rows and columns from `low` to
/// `high` (from 1) are reduced; the others already have Hessenberg form.
pub(super) fn gehrd(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    for_field!(a, gehrd_in(call, a))
}

fn gehrd_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal) -> Result<Literal> {
    let n = square_size("the operand", a)?;
    let attributes = call.attributes()?;
    let (low, high) = (attributes.integer("low")?, attributes.integer("high")?);
    let bounds = usize::try_from(low).ok().zip(usize::try_from(high).ok());
    let Some((low, high)) = bounds.filter(|&(low, high)| n == 0 || (1 <= low && low <= high && high <= n)) else {
        let message = format!("low and high must be rows from 1 to {n}, they are {low} and {high}");
        return Err(Error::invalid_argument(message));
    };
    let active = if n == 0 { 0..0 } else { low - 1..high };
    let mut matrices = matrices::<T>("the operand", a)?;
    let scales = matrices.iter_mut().flat_map(|matrix| reduce(matrix, active.clone()));
    let scales: Vec<Scalar> = scales.map(T::to_element).collect();
    let info = vec![Scalar::Signed(0); matrices.len()];
    Ok(Literal::tuple(vec![array(call, 0, &elements(&matrices))?, array(call, 1, &scales)?, array(call, 2, &info)?]))
}

/// Replaces a matrix by `q^H a q` in Hessenberg form. `q` is the product of reflections whose vectors are stored below
/// the first subdiagonal. Returns their scales, one for each column but the last.
pub(super) fn reduce<T: Field>(a: &mut Matrix<T>, active: Range<usize>) -> Vec<T> {
    let n = a.columns;
    let mut scales = vec![T::ZERO; n.saturating_sub(1)];
    let columns = active.start..active.end.saturating_sub(1);
    for (k, scale) in scales.iter_mut().enumerate().filter(|(k, _)| columns.contains(k)) {
        let rows = k + 1..active.end;
        *scale = make_reflection(a, rows.clone(), k);
        let vector = vector(a, rows, k);
        reflect_rows(a, 0..active.end, k + 1, &vector, *scale);
        reflect(a, k + 1, &vector, scale.conjugate(), k + 1..n);
    }
    scales
}

/// Returns the product of the reflections that [`reduce`] stored below the subdiagonal.
pub(super) fn product<T: Field>(a: &Matrix<T>, scales: &[T]) -> Matrix<T> {
    let mut q = Matrix::identity(a.rows);
    for (k, &scale) in scales.iter().enumerate().rev() {
        reflect(&mut q, k + 1, &vector(a, k + 1..a.rows, k), scale, k + 1..a.rows);
    }
    q
}

/// LAPACK's `sytrd` and `hetrd`: `(a, d, e, tau, info)`. The triangle `uplo` of `a` contains the diagonal and the
/// off-diagonal of the tridiagonal matrix, which are also `d` and `e`, and the vectors of the reflections. The other
/// triangle is unchanged.
pub(super) fn sytrd(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let lower = is_letter(&call.attributes()?, "uplo", 'L', 'U')?;
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    for_field!(a, sytrd_in(call, a, lower))
}

fn sytrd_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal, lower: bool) -> Result<Literal> {
    let n = square_size("the operand", a)?;
    let mut matrices = matrices::<T>("the operand", a)?;
    let (mut diagonal, mut off, mut scales) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in &mut matrices {
        // Reversing rows and columns maps the upper triangle to the lower one.
        let place = |i: usize, j: usize| if lower { (i, j) } else { (n - 1 - i, n - 1 - j) };
        let given = |i: usize, j: usize| matrix.at(place(i, j).0, place(i, j).1);
        let mut reduced = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Greater => given(i, j),
            std::cmp::Ordering::Equal => T::from_real(given(i, i).real()),
            std::cmp::Ordering::Less => given(j, i).conjugate(),
        });
        // A Hermitian matrix in Hessenberg form is tridiagonal.
        let mut taus = reduce(&mut reduced, 0..n);
        for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let value = if i == j { T::from_real(reduced.at(i, i).real()) } else { reduced.at(i, j) };
            *matrix.at_mut(place(i, j).0, place(i, j).1) = value;
        }
        let mut d: Vec<f64> = (0..n).map(|i| reduced.at(i, i).real()).collect();
        let mut e: Vec<f64> = (1..n).map(|i| reduced.at(i, i - 1).real()).collect();
        if !lower {
            d.reverse();
            e.reverse();
            taus.reverse();
        }
        diagonal.extend(d.into_iter().map(Scalar::Float));
        off.extend(e.into_iter().map(Scalar::Float));
        scales.extend(taus.into_iter().map(T::to_element));
    }
    let info = vec![Scalar::Signed(0); matrices.len()];
    let parts = [elements(&matrices), diagonal, off, scales, info];
    let arrays = parts.iter().enumerate().map(|(number, part)| array(call, number, part));
    Ok(Literal::tuple(arrays.collect::<Result<_>>()?))
}
