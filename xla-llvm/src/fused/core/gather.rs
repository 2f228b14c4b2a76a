//! Gather: index of an element in the operand, with coordinates that are loaded from an array.

use xla_hlo::ops::Gather;
use xla_hlo::{InstrId, Result};

use crate::fused::core::addressing::Addressing;
use crate::fused::loops::affine::{AffineExpr, Index};

/// Returns the index of a gather's element in its operand.
pub(crate) fn gathered_from<'m, A: Addressing<'m>>(
    s: &mut A,
    id: InstrId,
    op: &Gather,
    index: &Index,
) -> Result<Index> {
    let graph = s.graph();
    let (operand, indices) = (graph[id].operand(0), graph[id].operand(1));
    let dims = graph[operand].shape().expect_array()?.dims();
    let indices_rank = graph[indices].shape().expect_array()?.rank();
    // Result dimensions that are not offsets are the dimensions of the indices, in order.
    let batch: Vec<&AffineExpr> = (0..index.len()).filter(|d| !op.offset_dims.contains(d)).map(|d| &index[d]).collect();
    let place = |component: usize| -> Index {
        let mut batch = batch.iter();
        let expr = |d| if d == op.index_vector_dim { AffineExpr::constant(component as i64) } else { next(&mut batch) };
        (0..indices_rank).map(expr).collect()
    };
    let mut at = vec![AffineExpr::default(); dims.len()];
    for (component, &d) in op.start_index_map.iter().enumerate() {
        let room = dims[d].saturating_sub(op.slice_sizes[d]) as u64;
        if room > 0 {
            at[d] = s.loaded_coordinate(indices, &place(component), room)?;
        }
    }
    let mut batch_exprs = batch.iter();
    let by_indices_dim: Vec<AffineExpr> = (0..indices_rank)
        .map(|d| if d == op.index_vector_dim { AffineExpr::default() } else { next(&mut batch_exprs) })
        .collect();
    for (&d, &b) in op.operand_batching_dims.iter().zip(&op.start_indices_batching_dims) {
        at[d] = by_indices_dim[b].clone();
    }
    let in_slice =
        (0..dims.len()).filter(|d| !op.collapsed_slice_dims.contains(d) && !op.operand_batching_dims.contains(d));
    for (d, &o) in in_slice.zip(&op.offset_dims) {
        at[d] = at[d].clone().plus(&index[o]);
    }
    Ok(at)
}

fn next<'a>(batch: &mut impl Iterator<Item = &'a &'a AffineExpr>) -> AffineExpr {
    batch.next().map(|c| (*c).clone()).unwrap_or_default()
}
