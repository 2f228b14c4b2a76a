//! QR decompositions with column pivoting (P. Businger and G. Golub, 1965; Golub and Van Loan, algorithm 5.4.1).

use super::householder::factor_column;
use super::matrix::{Matrix, array, elements, for_field, matrices};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{Error, Literal, Result, Scalar};

/// LAPACK's `geqp3`: `(a, columns, tau)`. `a` and `tau` are the result of `geqrf` for the matrix whose column `j` is
/// column `columns[j]` (from 1) of operand 0. Columns with a nonzero element in operand 1 come first, in their order.
pub(super) fn geqp3(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [a, columns] = &operands[..] else { return Err(Error::invalid_argument("it takes two operands")) };
    for_field!(a, geqp3_in(call, a, columns))
}

fn geqp3_in<T: Field>(call: &CustomCallContext<'_>, a: &Literal, columns: &Literal) -> Result<Literal> {
    let mut matrices = matrices::<T>("operand 0", a)?;
    let (shape, width) = (columns.shape().expect_array()?, matrices.first().map_or(0, |m| m.columns));
    if !shape.element_type().is_integer() || shape.element_count() != width * matrices.len() {
        let message = format!("operand 1 must have {width} integers for each matrix, it is {shape}");
        return Err(Error::invalid_argument(message));
    }
    let (mut exchanges, mut scales) = (Vec::new(), Vec::new());
    for (k, matrix) in matrices.iter_mut().enumerate() {
        let fixed = (0..width).map(|j| columns.get(k * width + j).as_i128() != Some(0)).collect::<Vec<_>>();
        let (order, taus) = factor(matrix, &fixed);
        exchanges.extend(order.into_iter().map(|column| Scalar::Signed(column as i64 + 1)));
        scales.extend(taus.into_iter().map(T::to_element));
    }
    Ok(Literal::tuple(vec![
        array(call, 0, &elements(&matrices))?,
        array(call, 1, &exchanges)?,
        array(call, 2, &scales)?,
    ]))
}

/// Replaces a matrix by R and the vectors of the reflections; returns the order of the columns, and the scales.
fn factor<T: Field>(a: &mut Matrix<T>, fixed: &[bool]) -> (Vec<usize>, Vec<T>) {
    let mut order: Vec<usize> = (0..a.columns).collect();
    let mut count = 0;
    for j in (0..a.columns).filter(|&j| fixed[j]) {
        exchange(a, &mut order, j, count);
        count += 1;
    }
    let mut scales = Vec::new();
    for k in 0..a.rows.min(a.columns) {
        if k >= count {
            // Norms are recomputed instead of updated, which avoids cancellation.
            let norm = |j: usize| (k..a.rows).map(|i| a.at(i, j).modulus()).fold(0.0, f64::hypot);
            let norms: Vec<f64> = (k..a.columns).map(norm).collect();
            let greatest = (0..norms.len()).reduce(|best, j| if norms[j] > norms[best] { j } else { best });
            exchange(a, &mut order, k, k + greatest.unwrap_or(0));
        }
        scales.push(factor_column(a, k));
    }
    (order, scales)
}

fn exchange<T: Field>(a: &mut Matrix<T>, order: &mut [usize], i: usize, j: usize) {
    order.swap(i, j);
    for row in 0..a.rows {
        let (x, y) = (a.at(row, i), a.at(row, j));
        (*a.at_mut(row, i), *a.at_mut(row, j)) = (y, x);
    }
}
