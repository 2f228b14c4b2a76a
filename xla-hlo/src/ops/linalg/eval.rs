//! Evaluator of the linear algebra family: textbook methods in double precision, with one rounding of results.

use super::field::Field;
use super::*;
use crate::ops::checks;
use crate::{ArrayShape, ElementKind};

pub(super) fn cholesky(op: &Cholesky, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [a] = checks::operands(operands)?;
    let result = shape.expect_array()?;
    match result.element_type().kind() {
        ElementKind::Complex => cholesky_in::<(f64, f64)>(op, &a, result),
        ElementKind::Float | ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
            cholesky_in::<f64>(op, &a, result)
        }
    }
}

fn cholesky_in<T: Field>(op: &Cholesky, a: &Literal, result: &ArrayShape) -> Result<Literal> {
    let n = result.dims().last().copied().unwrap_or(0);
    let mut values = elements::<T>(a);
    for matrix in values.chunks_exact_mut((n * n).max(1)) {
        let mut factor = vec![T::ZERO; n * n];
        // `u^H u = a` is `l l^H = a` with `l = u^H`.
        let at = |i: usize, j: usize| if op.lower { matrix[i * n + j] } else { matrix[j * n + i].conjugate() };
        if lower_factor(n, at, &mut factor) < n {
            factor.fill(T::NAN);
        } else if !op.lower {
            factor = (0..n * n).map(|i| factor[i % n * n + i / n].conjugate()).collect();
        }
        matrix.copy_from_slice(&factor);
    }
    Literal::from_fn(result, |i| values[i].to_element())
}

/// Computes the lower triangular factor of the matrix whose lower triangle is `a(i, j)`, row by row (A.-L. Cholesky,
/// 1910). Stops at the first pivot that is not positive. Returns the number of completed rows.
pub(in crate::ops) fn lower_factor<T: Field>(n: usize, a: impl Fn(usize, usize) -> T, l: &mut [T]) -> usize {
    for i in 0..n {
        for j in 0..i {
            let sum = (0..j).fold(a(i, j), |sum, k| sum.minus_product(l[i * n + k], l[j * n + k].conjugate()));
            l[i * n + j] = sum.divided_by(l[j * n + j]);
        }
        let start = T::from_real(a(i, i).real());
        let pivot = (0..i).fold(start, |sum, k| sum.minus_product(l[i * n + k], l[i * n + k].conjugate())).real();
        if pivot.is_nan() || pivot <= 0.0 {
            return i;
        }
        l[i * n + i] = T::from_real(pivot.sqrt());
    }
    n
}

pub(in crate::ops) fn triangular_solve(op: &TriangularSolve, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [a, b] = checks::operands(operands)?;
    let result = shape.expect_array()?;
    match result.element_type().kind() {
        ElementKind::Complex => solve_in::<(f64, f64)>(op, &a, &b, result),
        ElementKind::Float | ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
            solve_in::<f64>(op, &a, &b, result)
        }
    }
}

/// Solves for each right-hand side separately. It is a column of `b` or, if the unknown is on the left, a row:
/// `x op(a) = b` is equivalent to `op(a)^T x^T = b^T`.
fn solve_in<T: Field>(op: &TriangularSolve, a: &Literal, b: &Literal, result: &ArrayShape) -> Result<Literal> {
    let &[.., rows, columns] = result.dims() else { return Err(checks::missing_operand()) };
    let (n, count) = if op.left_side { (rows, columns) } else { (columns, rows) };
    let (a, mut x) = (elements::<T>(a), elements::<T>(b));
    let transposed = (op.transpose_a != TransposeKind::NoTranspose) == op.left_side;
    if n == 0 || count == 0 {
        return Literal::zeros(result);
    }
    for (matrix, unknowns) in a.chunks_exact(n * n).zip(x.chunks_exact_mut(n * count)) {
        let coefficient = |i: usize, j: usize| {
            let value = if transposed { matrix[j * n + i] } else { matrix[i * n + j] };
            if op.transpose_a == TransposeKind::Adjoint { value.conjugate() } else { value }
        };
        for side in 0..count {
            let place = |i: usize| if op.left_side { i * count + side } else { side * n + i };
            let mut line: Vec<T> = (0..n).map(|i| unknowns[place(i)]).collect();
            substitute(op.lower != transposed, op.unit_diagonal, coefficient, &mut line);
            line.into_iter().enumerate().for_each(|(i, value)| unknowns[place(i)] = value);
        }
    }
    Literal::from_fn(result, |i| x[i].to_element())
}

/// Solves for the unknowns sequentially, starting with the row that has a single coefficient.
fn substitute<T: Field>(lower: bool, unit_diagonal: bool, a: impl Fn(usize, usize) -> T, x: &mut [T]) {
    let n = x.len();
    for step in 0..n {
        let i = if lower { step } else { n - 1 - step };
        let known = if lower { 0..i } else { i + 1..n };
        let rest = known.fold(x[i], |rest, j| rest.minus_product(a(i, j), x[j]));
        x[i] = if unit_diagonal { rest } else { rest.divided_by(a(i, i)) };
    }
}

fn elements<T: Field>(literal: &Literal) -> Vec<T> {
    (0..literal.array_shape().element_count()).map(|i| T::from_element(literal.get(i))).collect()
}
