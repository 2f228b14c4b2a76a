//! Right operands of dots: contracted dimensions before free ones.

use xla_hlo::ArrayShape;
use xla_hlo::ops::Dot;

/// Columns side by side with which a target is content: fewer do not fill several vectors. An operand of fewer
/// columns is as good in any order, since each column is a sum along a row of memory then.
const ENOUGH_COLUMNS: usize = 64;

/// Batch dimensions, contracted ones, free ones; `None` where enough columns lie side by side already.
///
/// It does not matter to a single row: then each element of the operand is read once, and is not packed.
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
    // Sums go through both operands in the order in which the left one lies.
    let mut sums: Vec<(usize, usize)> = l.contracting.iter().copied().zip(r.contracting.iter().copied()).collect();
    sums.sort_unstable();
    let contracting: Vec<usize> = sums.into_iter().map(|(_, d)| d).collect();
    Some([r.batch, &contracting, &r.free].concat())
}

fn extent(shape: &ArrayShape, dims: &[usize]) -> usize {
    dims.iter().map(|&d| shape.dims()[d]).fold(1, usize::saturating_mul)
}
