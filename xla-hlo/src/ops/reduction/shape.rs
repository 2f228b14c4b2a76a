//! Shape rules of the reduction family.

use super::*;
use crate::ops::checks;
use crate::ops::combiner::{Accumulators, ReduceOperands};

/// Returns the shape of a reduction, with the dimensions that are not reduced and the combiner's element types.
pub(super) fn reduce(op: &Reduce, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (dims, elements, inits) = ReduceOperands::check(cx)?;
    checks::distinct("dimensions", &op.dimensions, dims.len())?;
    let accumulators = Accumulators::check(cx, op.computation, &elements, &inits)?;
    accumulators.shape(&kept(op, dims.len()).iter().map(|&d| dims[d]).collect::<Vec<_>>())
}

/// Returns the dimensions that are not reduced, in ascending order.
pub(super) fn kept(op: &Reduce, rank: usize) -> Vec<usize> {
    let mut kept = vec![true; rank];
    op.dimensions.iter().for_each(|&d| kept[d] = false);
    (0..rank).filter(|&d| kept[d]).collect()
}
