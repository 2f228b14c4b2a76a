//! Eigenvectors of general matrices, computed from Schur forms by back substitution (Golub and Van Loan, section
//! 7.6.4).

use super::flags::is_letter;
use super::matrix::{Matrix, array, elements, for_field, matrices, square_size};
use super::schur::{Schur, SchurField, decompose, eigenvalue_parts};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar};

type Complex = (f64, f64);

/// Upper bound of the elements of a vector while it is computed.
const LARGE: f64 = 1e100;

/// LAPACK's `geev`: `(eigenvalues, left eigenvectors, right eigenvectors, info)`. For real matrices, the real and the
/// imaginary parts of the eigenvalues are separate results. Eigenvectors that were not requested are 0. If a matrix is
/// not finite, all its results are 0 and `info` is -4.
pub(super) fn geev(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    for_field!(a, geev_in(call, a))
}

fn geev_in<T: SchurField>(call: &CustomCallContext<'_>, a: &Literal) -> Result<Literal> {
    let attributes = call.attributes()?;
    let (has_left, has_right) =
        (is_letter(&attributes, "compute_left", 'V', 'N')?, is_letter(&attributes, "compute_right", 'V', 'N')?);
    let n = square_size("the operand", a)?;
    let none = || Matrix::from_fn(n, n, |_, _| Complex::ZERO);
    let (mut values, mut left, mut right, mut info) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for matrix in matrices::<T>("the operand", a)? {
        if !matrix.elements.iter().all(|x| x.modulus().is_finite()) {
            values.extend(vec![Complex::ZERO; n]);
            left.push(none());
            right.push(none());
            info.push(Scalar::Signed(-4));
            continue;
        }
        let (balanced, scales) = balance(&matrix);
        let schur = decompose(&balanced);
        right.push(if has_right { vectors(&schur, |i| scales[i], right_vectors) } else { none() });
        left.push(if has_left { vectors(&schur, |i| 1.0 / scales[i], left_vectors) } else { none() });
        info.push(Scalar::Signed(schur.failed as i64));
        values.extend(schur.values);
    }
    let mut parts = eigenvalue_parts(a, &values);
    parts.extend([elements(&left), elements(&right), info]);
    let arrays = parts.iter().enumerate().map(|(number, part)| array(call, number, part));
    Ok(Literal::tuple(arrays.collect::<Result<_>>()?))
}

/// Returns `d^-1 a d` and `d`, a diagonal matrix of powers of two that makes the norms of rows and columns similar (B.
/// Parlett and C. Reinsch, 1969).
fn balance<T: Field>(a: &Matrix<T>) -> (Matrix<T>, Vec<f64>) {
    let n = a.rows;
    let (mut a, mut scales) = (a.clone(), vec![1.0; n]);
    // Each scaling reduces the norm of a row and its column by at least 5%. More sweeps than this bring no gain.
    for _ in 0..100 {
        let mut any = false;
        for (i, scale) in scales.iter_mut().enumerate() {
            let others = || (0..n).filter(move |&j| j != i);
            let (row, column): (f64, f64) =
                (others().map(|j| a.at(i, j).modulus()).sum(), others().map(|j| a.at(j, i).modulus()).sum());
            let factor = (0.5 * (row / column).log2()).round();
            if !factor.is_finite() || factor == 0.0 {
                continue;
            }
            let factor = factor.clamp(-500.0, 500.0).exp2();
            let is_sane = |scale: f64| (1e-150..1e150).contains(&scale);
            if column * factor + row / factor < 0.95 * (column + row) && is_sane(*scale * factor) {
                others().for_each(|j| *a.at_mut(i, j) = a.at(i, j).times(T::from_real(1.0 / factor)));
                others().for_each(|j| *a.at_mut(j, i) = a.at(j, i).times(T::from_real(factor)));
                *scale *= factor;
                any = true;
            }
        }
        if !any {
            break;
        }
    }
    (a, scales)
}

/// Returns eigenvectors as columns of length 1. If the matrix or the eigenvalue is complex, the greatest element is
/// real.
fn vectors<T: Field>(
    schur: &Schur<T>,
    scale: impl Fn(usize) -> f64,
    of_form: fn(&Matrix<Complex>, &[Complex]) -> Vec<Vec<Complex>>,
) -> Matrix<Complex> {
    let n = schur.t.rows;
    let complex = |m: &Matrix<T>| Matrix::from_fn(n, n, |i, j| Complex::from_element(m.at(i, j).to_element()));
    let (t, z) = (complex(&schur.t), complex(&schur.z));
    let is_real = matches!(T::ZERO.to_element(), Scalar::Float(_));
    let mut columns = of_form(&t, &schur.values);
    for (column, value) in columns.iter_mut().zip(&schur.values) {
        let element = |i: usize| (0..n).fold(Complex::ZERO, |sum, k| sum.plus(z.at(i, k).times(column[k])));
        let mut vector: Vec<Complex> = (0..n).map(|i| element(i).times((scale(i), 0.0))).collect();
        let greatest = vector.iter().copied().fold(Complex::ZERO, |a, b| if b.modulus() > a.modulus() { b } else { a });
        let size = greatest.modulus();
        vector.iter_mut().for_each(|x| *x = (x.0 / size, x.1 / size));
        let length = vector.iter().map(|x| x.0 * x.0 + x.1 * x.1).sum::<f64>().sqrt();
        let has_phase = !is_real || value.1 != 0.0;
        let phase = if has_phase { greatest.conjugate().divided_by((size, 0.0)) } else { Complex::from_real(1.0) };
        *column = vector.iter().map(|x| x.times(phase).divided_by((length, 0.0))).collect();
        if let Some(real) = column.iter_mut().reduce(|a, b| if b.modulus() > a.modulus() { b } else { a })
            && has_phase
        {
            real.1 = 0.0;
        }
    }
    Matrix::from_fn(n, n, |i, j| columns[j][i])
}

/// Returns the vectors `x` with `t x = x value`. `t` is triangular, or block triangular with blocks for pairs of
/// eigenvalues.
fn right_vectors(t: &Matrix<Complex>, values: &[Complex]) -> Vec<Vec<Complex>> {
    let greatest = t.elements.iter().map(|x| x.modulus()).fold(0.0, f64::max);
    let least = if greatest == 0.0 { f64::MIN_POSITIVE } else { (greatest * f64::EPSILON).max(f64::MIN_POSITIVE) };
    let has_block = |i: usize| i + 1 < t.rows && t.at(i + 1, i) != Complex::ZERO;
    (0..t.rows)
        .map(|k| {
            let mut x = vec![Complex::ZERO; t.rows];
            // The block of the eigenvalue determines the last elements.
            let first = if k > 0 && has_block(k - 1) { k - 1 } else { k };
            if has_block(first) {
                (x[first], x[first + 1]) = (t.at(first, first + 1), values[k].minus(t.at(first, first)));
                let size = x[first].modulus().max(x[first + 1].modulus());
                x.iter_mut().for_each(|x| *x = x.divided_by((size, 0.0)));
            } else {
                x[first] = Complex::from_real(1.0);
            }
            let mut rest = first;
            while rest > 0 {
                let pair = rest > 1 && has_block(rest - 2);
                rest -= if pair { 2 } else { 1 };
                substitute(t, values[k], &mut x, rest, pair, least);
            }
            x
        })
        .collect()
}

/// Computes element `i`, or elements `i` and `i + 1`, of an eigenvector from the elements after it. A pivot below
/// `least` is replaced by `least`: the result is then an eigenvector of a matrix that differs by that amount.
fn substitute(t: &Matrix<Complex>, value: Complex, x: &mut [Complex], i: usize, pair: bool, least: f64) {
    let known = if pair { i + 2 } else { i + 1 };
    let right = |row: usize| (known..t.rows).fold(Complex::ZERO, |sum, k| sum.minus_product(t.at(row, k), x[k]));
    let pivot = |p: Complex, least: f64| if p.modulus() < least { Complex::from_real(least) } else { p };
    if pair {
        let (a, b, c, d) = (t.at(i, i).minus(value), t.at(i, i + 1), t.at(i + 1, i), t.at(i + 1, i + 1).minus(value));
        let size = [a, b, c, d].map(|x| x.modulus()).into_iter().fold(0.0, f64::max);
        let determinant = pivot(a.times(d).minus(b.times(c)), least * size);
        let (p, q) = (right(i), right(i + 1));
        x[i] = p.times(d).minus(q.times(b)).divided_by(determinant);
        x[i + 1] = q.times(a).minus(p.times(c)).divided_by(determinant);
    } else {
        x[i] = right(i).divided_by(pivot(t.at(i, i).minus(value), least));
    }
    let size = x[i].modulus().max(x[known - 1].modulus());
    if size > LARGE {
        x.iter_mut().for_each(|x| *x = (x.0 / size, x.1 / size));
    }
}

/// Returns the vectors `y` with `y^H t = value y^H`. These are right eigenvectors of the adjoint, which is upper
/// triangular after its rows and columns are reversed.
fn left_vectors(t: &Matrix<Complex>, values: &[Complex]) -> Vec<Vec<Complex>> {
    let n = t.rows;
    let adjoint = Matrix::from_fn(n, n, |i, j| t.at(n - 1 - j, n - 1 - i).conjugate());
    let values: Vec<Complex> = values.iter().rev().map(|value| value.conjugate()).collect();
    let mut vectors = right_vectors(&adjoint, &values);
    vectors.iter_mut().for_each(|vector| vector.reverse());
    vectors.reverse();
    vectors
}
