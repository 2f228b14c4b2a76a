//! Gather: an element whose index is loaded from an array.

use xla_hlo::ops::Gather;
use xla_hlo::{InstrId, Result};

use crate::elemental::Value;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    pub(crate) fn gathered(&mut self, id: InstrId, op: &Gather, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let (operand, indices) = (instruction.operand(0), instruction.operand(1));
        let dims = self.graph()[operand].shape().expect_array()?.dims().to_vec();
        let indices_rank = self.graph()[indices].shape().expect_array()?.rank();
        // Result dimensions that are not offsets are the dimensions of the indices, in order.
        let batch: Vec<&AffineExpr> =
            (0..index.len()).filter(|d| !op.offset_dims.contains(d)).map(|d| &index[d]).collect();
        let place = |component: usize| -> Index {
            let mut batch = batch.iter();
            let expr =
                |d| if d == op.index_vector_dim { AffineExpr::constant(component as i64) } else { next(&mut batch) };
            (0..indices_rank).map(expr).collect()
        };
        let mut at = vec![AffineExpr::default(); dims.len()];
        for (component, &d) in op.start_index_map.iter().enumerate() {
            let room = dims[d].saturating_sub(op.slice_sizes[d]) as u64;
            if room == 0 {
                continue;
            }
            let place = place(component);
            let start = self.element(indices, &place)?;
            let level = self.level(&place);
            let mask = self.existing_lanes(&place);
            at[d] = self.clamped(start, room, level, mask)?;
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
        self.element(operand, &at)
    }
}

fn next<'a>(batch: &mut impl Iterator<Item = &'a &'a AffineExpr>) -> AffineExpr {
    batch.next().map(|c| (*c).clone()).unwrap_or_default()
}
