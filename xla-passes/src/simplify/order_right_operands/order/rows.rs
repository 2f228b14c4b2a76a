//! Right operands of dots: contracted dimensions before free ones.

use xla_hlo::ArrayShape;
use xla_hlo::ops::Dot;

/// Number of contiguous columns that a target needs to fill several vectors. An operand with fewer columns is equally
/// fast in any order, since each column is then a sum along a row of memory.
const ENOUGH_COLUMNS: usize = 64;

/// Returns the order batch, contracted, free; `None` if enough columns are already contiguous.
///
/// The order does not matter for a left operand of a single row: each element of the right operand is then read once
/// and is not packed.
pub(super) fn wanted(dot: &Dot, [left, right]: [&ArrayShape; 2]) -> Option<Vec<usize>> {
    let [l, r] = dot.dims.operands([left.rank(), right.rank()]);
    let is_matmul = extent(left, &l.free) > 1 && extent(right, r.contracting) > 1;
    if !is_matmul || extent(right, &r.free) < ENOUGH_COLUMNS {
        return None;
    }
    let minor = (0..right.rank()).rev().take_while(|d| right.dims()[*d] == 1 || r.free.contains(d));
    if extent(right, &minor.collect::<Vec<usize>>()) >= ENOUGH_COLUMNS {
        return None;
    }
    // Sums iterate over both operands in the memory order of the left one.
    let mut sums: Vec<(usize, usize)> = l.contracting.iter().copied().zip(r.contracting.iter().copied()).collect();
    sums.sort_unstable();
    let contracting: Vec<usize> = sums.into_iter().map(|(_, d)| d).collect();
    Some([r.batch, &contracting, &r.free].concat())
}

fn extent(shape: &ArrayShape, dims: &[usize]) -> usize {
    dims.iter().map(|&d| shape.dims()[d]).fold(1, usize::saturating_mul)
}
