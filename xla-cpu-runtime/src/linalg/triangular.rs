//! Solver of equations with a lower triangular matrix.

use super::number::Number;
use super::view::{BLOCK, PARALLEL_WORK, View};
use crate::pool;

/// Number of right-hand sides that are processed together.
const PANEL: usize = 64;

/// Lower triangular matrix; elements above the diagonal are not read.
#[derive(Clone, Copy)]
pub(super) struct Triangle<T> {
    pub lower: View<T>,
    /// Whether the conjugate of the matrix is used.
    pub is_conjugated: bool,
    /// Whether the diagonal is taken as 1, independent of the stored elements.
    pub has_unit_diagonal: bool,
}

/// Replaces each column of `x`, a right-hand side, by the solution of its equations.
pub(super) fn solve_on_threads<T: Number>(triangle: Triangle<T>, x: View<T>, threads: usize) {
    let (n, columns) = (x.rows(), x.columns());
    if n == 0 || columns == 0 {
        return;
    }
    let work = n.saturating_mul(n).saturating_mul(columns) / 2;
    let chunks = if work < PARALLEL_WORK { 1 } else { threads.min(columns.div_ceil(PANEL)).max(1) };
    pool::parallel_for(threads, chunks, &|chunk| {
        let columns = columns * chunk / chunks..columns * (chunk + 1) / chunks;
        solve(triangle, x.block(0..n, columns), &mut Workspace { triangle: Vec::new(), panel: Vec::new() });
    });
}

/// Row-major copies of the blocks that are processed.
struct Workspace<T> {
    triangle: Vec<T>,
    panel: Vec<T>,
}

/// Solves recursively: the first half of the unknowns, whose contribution is subtracted from the other right-hand
/// sides, then the second half.
fn solve<T: Number>(triangle: Triangle<T>, x: View<T>, workspace: &mut Workspace<T>) {
    let n = x.rows();
    if n <= BLOCK {
        return solve_block(triangle, x, workspace);
    }
    let half = (n / 2).next_multiple_of(BLOCK);
    let of = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| triangle.lower.block(rows, columns);
    let (first, second) = (x.row_range(0..half), x.row_range(half..n));
    solve(Triangle { lower: of(0..half, 0..half), ..triangle }, first, workspace);
    second.subtract_product((of(half..n, 0..half), triangle.is_conjugated), (first, false));
    solve(Triangle { lower: of(half..n, half..n), ..triangle }, second, workspace);
}

/// Performs forward substitution, for a panel of right-hand sides at a time.
fn solve_block<T: Number>(triangle: Triangle<T>, x: View<T>, workspace: &mut Workspace<T>) {
    let n = x.rows();
    workspace.triangle.resize(n * n, T::zero());
    triangle.lower.load(&mut workspace.triangle);
    if triangle.is_conjugated {
        workspace.triangle.iter_mut().for_each(|a| *a = a.conj());
    }
    for start in (0..x.columns()).step_by(PANEL) {
        let panel = x.block(0..n, start..(start + PANEL).min(x.columns()));
        workspace.panel.resize(n * panel.columns(), T::zero());
        panel.load(&mut workspace.panel);
        substitute(&workspace.triangle, triangle.has_unit_diagonal, &mut workspace.panel, panel.columns());
        panel.store(&workspace.panel);
    }
}

/// Solves for the rows of unknowns in sequence; both arrays are row-major.
fn substitute<T: Number>(a: &[T], has_unit_diagonal: bool, x: &mut [T], columns: usize) {
    let n = x.len() / columns;
    for (i, coefficients) in a.chunks_exact(n).enumerate() {
        let (known, rest) = x.split_at_mut(i * columns);
        let row = &mut rest[..columns];
        for (&a, known) in coefficients.iter().zip(known.chunks_exact(columns)) {
            row.iter_mut().zip(known).for_each(|(x, &known)| *x = *x - a * known);
        }
        if !has_unit_diagonal {
            row.iter_mut().for_each(|x| *x = x.over(coefficients[i]));
        }
    }
}
