//! Cholesky factorization of one matrix.

use super::number::Number;
use super::triangular::{self, Triangle};
use super::view::View;
use super::{BLOCK, PARALLEL_WORK};
use crate::pool;

/// Minimum number of rows that a task of the symmetric update processes.
const PANEL: usize = 64;

/// Replaces the matrix, whose lower triangle is given, by its lower factor, or by NaN if it is not positive definite.
pub(super) fn decompose<T: Number>(matrix: View<T>, threads: usize) {
    let n = matrix.rows();
    if !factor(matrix, threads, &mut Vec::new()) {
        return matrix.fill(T::nan());
    }
    (0..n).for_each(|i| matrix.block(i..i + 1, i + 1..n).fill(T::zero()));
}

/// Factors the lower triangle recursively: factors the upper left block, solves for the block below it (TRSM), updates
/// the lower right block (SYRK) and factors that. Returns whether the matrix is positive definite; elements above the
/// diagonal are undefined.
fn factor<T: Number>(a: View<T>, threads: usize, block: &mut Vec<T>) -> bool {
    let n = a.rows();
    if n <= BLOCK {
        block.resize(n * n, T::zero());
        a.load(block);
        let is_definite = factor_block(block, n);
        a.store(block);
        return is_definite;
    }
    let half = (n / 2).next_multiple_of(BLOCK);
    let (first, below, rest) = (a.block(0..half, 0..half), a.block(half..n, 0..half), a.block(half..n, half..n));
    if !factor(first, threads, block) {
        return false;
    }
    // `x l^H = below` is equivalent to `conj(l) x^T = below^T`.
    let triangle = Triangle { lower: first, is_conjugated: true, has_unit_diagonal: false };
    triangular::solve_on_threads(triangle, below.transposed(), threads);
    subtract_square(rest, below, threads);
    factor(rest, threads, block)
}

/// Subtracts `x x^H` from the lower triangle of `a`, a panel of rows at a time.
fn subtract_square<T: Number>(a: View<T>, x: View<T>, threads: usize) {
    let n = a.rows();
    let threads = if n.saturating_mul(n).saturating_mul(x.columns()) / 2 < PARALLEL_WORK { 1 } else { threads };
    let rows = PANEL.max(n.div_ceil(8));
    let panels = n.div_ceil(rows);
    pool::parallel_for(threads, panels, &|panel| {
        // Start with the longest panels, to balance the load.
        let start = (panels - 1 - panel) * rows;
        let end = (start + rows).min(n);
        let adjoint = x.row_range(0..end).transposed();
        a.block(start..end, 0..end).subtract_product((x.row_range(start..end), false), (adjoint, true));
    });
}

/// Factors a row-major block column by column; returns whether it is positive definite.
fn factor_block<T: Number>(a: &mut [T], n: usize) -> bool {
    let mut column = [T::zero(); BLOCK];
    for j in 0..n {
        let Some(root) = a[j * n + j].positive_root() else { return false };
        a[j * n + j] = root;
        for i in j + 1..n {
            let x = a[i * n + j].over(root);
            a[i * n + j] = x;
            column[i] = x.conj();
            let row = &mut a[i * n + j + 1..=i * n + i];
            row.iter_mut().zip(&column[j + 1..=i]).for_each(|(a, &y)| *a = *a - x * y);
        }
    }
    true
}
