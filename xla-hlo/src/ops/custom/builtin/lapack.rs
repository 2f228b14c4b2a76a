//! LAPACK routines under JAX's names, such as `lapack_spotrf_ffi`. The letter before the routine is the element type,
//! which the operands also determine.

use super::eigen::decompose_all;
use super::flags::is_letter;
use super::matrix::{array, elements, for_field, matrices, square_size};
use super::{geev, hessenberg, householder, lu, pivoted, schur, singular, tridiagonal};
use crate::ops::linalg::{self, field::Field};
use crate::ops::{CustomCallContext, CustomCallHandler, TransposeKind, TriangularSolve};
use crate::{Error, Literal, Result, Scalar};

/// Returns the handler of a routine.
pub(super) fn find(target: &str) -> Option<&'static dyn CustomCallHandler> {
    let routine = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let (precision, routine) = routine.split_at_checked(1)?;
    let handler: &'static dyn CustomCallHandler = match (precision, routine) {
        ("s" | "d" | "c" | "z", "potrf") => &potrf,
        ("s" | "d" | "c" | "z", "getrf") => &getrf,
        ("s" | "d" | "c" | "z", "geqrf") => &householder::qr,
        ("s" | "d", "orgqr") | ("c" | "z", "ungqr") => &householder::product,
        ("s" | "d", "syevd") | ("c" | "z", "heevd") => &syevd,
        ("s" | "d" | "c" | "z", "trsm") => &trsm,
        ("s" | "d" | "c" | "z", "gesdd") => &singular::gesdd,
        ("s" | "d" | "c" | "z", "gesvd") => &singular::gesvd,
        ("s" | "d" | "c" | "z", "geqp3") => &pivoted::geqp3,
        ("s" | "d", "ormqr") | ("c" | "z", "unmqr") => &householder::multiply,
        ("s" | "d" | "c" | "z", "gehrd") => &hessenberg::gehrd,
        ("s" | "d", "sytrd") | ("c" | "z", "hetrd") => &hessenberg::sytrd,
        ("s" | "d" | "c" | "z", "gees") => &schur::gees,
        ("s" | "d" | "c" | "z", "geev") => &geev::geev,
        ("s" | "d" | "c" | "z", "gtsv") => &tridiagonal::gtsv,
        _ => return None,
    };
    Some(handler)
}

/// LAPACK's `potrf`, a Cholesky factorization: `(factor, info)`. The other triangle is copied from the operand, as are
/// the rows from the first non-positive pivot on.
fn potrf(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let lower = is_letter(&call.attributes()?, "uplo", 'L', 'U')?;
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    for_field!(a, potrf_in(call, a, lower))
}

fn potrf_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal, lower: bool) -> Result<Literal> {
    let n = square_size("the operand", a)?;
    let mut matrices = matrices::<T>("the operand", a)?;
    let mut info = Vec::new();
    for matrix in &mut matrices {
        let mut factor = vec![T::ZERO; n * n];
        // `u^H u = a` is `l l^H = a` with `l = u^H`.
        let at = |i: usize, j: usize| if lower { matrix.at(i, j) } else { matrix.at(j, i).conjugate() };
        let rows = linalg::lower_factor(n, at, &mut factor);
        for (i, j) in (0..rows).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let value = factor[i * n + j];
            let (place, value) = if lower { ((i, j), value) } else { ((j, i), value.conjugate()) };
            *matrix.at_mut(place.0, place.1) = value;
        }
        info.push(Scalar::Signed(if rows == n { 0 } else { rows as i64 + 1 }));
    }
    Ok(Literal::tuple(vec![array(call, 0, &elements(&matrices))?, array(call, 1, &info)?]))
}

/// LAPACK's `getrf`, an LU factorization: `(factors, exchanged rows, info)`.
fn getrf(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    for_field!(a, getrf_in(call, a))
}

fn getrf_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal) -> Result<Literal> {
    let mut matrices = matrices::<T>("the operand", a)?;
    let (mut exchanges, mut info) = (Vec::new(), Vec::new());
    for matrix in &mut matrices {
        let (rows, failed) = lu::factor(matrix);
        exchanges.extend(rows.into_iter().map(Scalar::Signed));
        info.push(Scalar::Signed(failed));
    }
    Ok(Literal::tuple(vec![array(call, 0, &elements(&matrices))?, array(call, 1, &exchanges)?, array(call, 2, &info)?]))
}

/// LAPACK's `syevd` and `heevd`: `(eigenvectors, eigenvalues, info)`. If no eigenvectors are requested, the first
/// result has no meaning.
fn syevd(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let lower = is_letter(&call.attributes()?, "uplo", 'L', 'U')?;
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    let (count, ..) = super::matrix::sizes("the operand", a.shape().expect_array()?)?;
    let (vectors, values) = for_field!(a, decompose_all(a, lower))?;
    let info = vec![Scalar::Signed(0); count];
    Ok(Literal::tuple(vec![array(call, 0, &vectors)?, array(call, 1, &values)?, array(call, 2, &info)?]))
}

/// LAPACK's `trsm`: the solution of a triangular system.
fn trsm(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let attributes = call.attributes()?;
    let kind = attributes.integer("trans_x")?;
    let op = TriangularSolve {
        left_side: is_letter(&attributes, "side", 'L', 'R')?,
        lower: is_letter(&attributes, "uplo", 'L', 'U')?,
        unit_diagonal: is_letter(&attributes, "diag", 'U', 'N')?,
        transpose_a: match u8::try_from(kind) {
            Ok(b'N') => TransposeKind::NoTranspose,
            Ok(b'T') => TransposeKind::Transpose,
            Ok(b'C') => TransposeKind::Adjoint,
            _ => {
                let message = format!("attribute trans_x must be the code of N, T or C, it is {kind}");
                return Err(Error::invalid_argument(message));
            }
        },
    };
    let [a, b] = &operands[..] else { return Err(Error::invalid_argument("it takes two operands")) };
    let shape = linalg::triangular_solve_shape(&op, a.shape().expect_array()?, b.shape().expect_array()?)?;
    linalg::evaluate_triangular_solve(&op, operands, &shape)
}
