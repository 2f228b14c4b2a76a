//! LU factorization with row exchanges (Gaussian elimination with partial pivoting).

use super::matrix::Matrix;
use crate::Scalar;
use crate::ops::linalg::field::Field;

/// Replaces a matrix by its factors, without the unit diagonal of the lower one. Returns for each row the number (from
/// 1) of the row exchanged with it, and the first column (from 1) without a pivot, or 0.
pub(super) fn factor<T: Field>(a: &mut Matrix<T>) -> (Vec<i64>, i64) {
    let (mut exchanges, mut failed) = (Vec::new(), 0);
    for k in 0..a.rows.min(a.columns) {
        // Selects the first of the largest elements.
        let larger = |best: usize, i: usize| if size(a.at(i, k)) > size(a.at(best, k)) { i } else { best };
        let pivot = (k..a.rows).reduce(larger).unwrap_or(k);
        exchanges.push(pivot as i64 + 1);
        for j in 0..a.columns {
            let (upper, lower) = (a.at(k, j), a.at(pivot, j));
            (*a.at_mut(k, j), *a.at_mut(pivot, j)) = (lower, upper);
        }
        if size(a.at(k, k)) == 0.0 {
            failed = if failed == 0 { k as i64 + 1 } else { failed };
            continue;
        }
        for i in k + 1..a.rows {
            let factor = a.at(i, k).divided_by(a.at(k, k));
            *a.at_mut(i, k) = factor;
            for j in k + 1..a.columns {
                *a.at_mut(i, j) = a.at(i, j).minus_product(factor, a.at(k, j));
            }
        }
    }
    (exchanges, failed)
}

/// Returns the sum of the magnitudes of the parts, which is LAPACK's criterion for pivots.
fn size<T: Field>(x: T) -> f64 {
    match x.to_element() {
        Scalar::Complex(re, im) => re.abs() + im.abs(),
        _ => x.real().abs(),
    }
}
