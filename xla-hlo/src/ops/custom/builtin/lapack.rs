//! LAPACK routines under the names that JAX gives them, `lapack_spotrf_ffi` and the like; the letter says the element type,
//! which the operands say too.

use super::eigen::decompose_all;
use super::matrix::{array, elements, for_field, matrices, result_arrays};
use super::{householder, lu, singular};
use crate::ops::linalg::{self, field::Field};
use crate::ops::{Cholesky, CustomCallContext, CustomCallHandler, FfiAttributes, TransposeKind, TriangularSolve};
use crate::{Error, Literal, Result, Scalar};

/// The handler of a routine.
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
        _ => return None,
    };
    Some(handler)
}

/// Whether an attribute is that letter, where only one other is allowed.
fn is_letter(attributes: &FfiAttributes, name: &str, yes: char, no: char) -> Result<bool> {
    let code = attributes.integer(name)?;
    let found = u8::try_from(code).map(char::from);
    match found {
        Ok(letter) if letter == yes => Ok(true),
        Ok(letter) if letter == no => Ok(false),
        _ => Err(Error::invalid_argument(format!("attribute {name} must be the code of {yes} or {no}, it is {code}"))),
    }
}

/// `(factor, info)`.
fn potrf(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let lower = is_letter(&call.attributes()?, "uplo", 'L', 'U')?;
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    let (count, n, _) = super::matrix::sizes("the operand", a.shape().expect_array()?)?;
    let shapes = result_arrays(call);
    let shape = shapes.first().ok_or_else(|| Error::invalid_argument("the result must be (factor, info)"))?;
    if !shape.compatible(a.shape()) {
        return Err(Error::invalid_argument(format!("the factor must be {}, it is {shape}", a.shape())));
    }
    let factor = linalg::evaluate_cholesky(&Cholesky { lower }, operands, shape)?;
    let failed = |k: usize| n > 0 && f64::from_element(factor.get(k * n * n)).is_nan();
    let info: Vec<Scalar> = (0..count).map(|k| Scalar::Signed(i64::from(failed(k)))).collect();
    Ok(Literal::tuple(vec![factor, array(call, 1, &info)?]))
}

/// `(factors, exchanged rows, info)`.
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

/// `(eigenvectors, eigenvalues, info)`; without vectors the first is of no meaning.
fn syevd(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let lower = is_letter(&call.attributes()?, "uplo", 'L', 'U')?;
    let [a] = &operands[..] else { return Err(Error::invalid_argument("it takes one operand")) };
    let (count, ..) = super::matrix::sizes("the operand", a.shape().expect_array()?)?;
    let (vectors, values) = for_field!(a, decompose_all(a, lower))?;
    let info = vec![Scalar::Signed(0); count];
    Ok(Literal::tuple(vec![array(call, 0, &vectors)?, array(call, 1, &values)?, array(call, 2, &info)?]))
}

/// The solution of a triangular system.
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
