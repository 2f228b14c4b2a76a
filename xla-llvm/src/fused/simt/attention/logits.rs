//! Logits of scores: all that a program computes between the first dot and the softmax.

use xla_hlo::{ElementType, Result};

use super::plan::AttentionKernel;
use crate::elemental::Value;
use crate::fused::contraction::matmul::MatmulSide;
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::variables::counters;
use crate::lanes::Lanes;

impl<'m> AttentionKernel<'m> {
    /// The logits of neighbouring scores, as f32, of a query and the first of the keys.
    pub(super) fn logit<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        batch: &[AffineExpr],
        [row, key]: [&AffineExpr; 2],
        score: Value<'e, 'ctx>,
    ) -> Result<Lanes<'e, 'ctx>> {
        let (matmul, parts) = (&self.scores, &self.parts);
        let [queries, keys, _] = self.sides();
        let rows = coordinates(s, row, &matmul.free[queries as usize])?;
        let mut columns = vec![key.clone()];
        s.as_lanes(&mut columns, score.width().into(), &matmul.free[keys as usize])?;
        let index = match queries {
            MatmulSide::Left => matmul.result_index(batch, &rows, &columns),
            MatmulSide::Right => matmul.result_index(batch, &columns, &rows),
        };
        let ty = s.graph()[matmul.id].shape().expect_array()?.element_type();
        let value = converted(s.emitter, score, matmul.element_type)?;
        let value = converted(s.emitter, value, ty)?;
        s.values.insert((matmul.id, index.clone(), s.guard), vec![value]);
        let at = parts.logit_dims.iter().map(|d| d.map_or_else(AffineExpr::default, |d| index[d].clone())).collect();
        let logit = s.element(parts.logits, &at)?.splat(score.width());
        Ok(converted(s.emitter, logit, ElementType::F32)?.lanes())
    }
}

/// Coordinates from their number; 0 along dimensions of single elements, so that what is computed at an index is found
/// there whichever way it is asked for.
pub(super) fn coordinates(
    s: &mut FusedEmitter<'_, '_, '_>,
    number: &AffineExpr,
    extents: &[u64],
) -> Result<Vec<AffineExpr>> {
    let mut found = counters(s, number, extents)?;
    for (coordinate, _) in found.iter_mut().zip(extents).filter(|(_, extent)| **extent == 1) {
        *coordinate = AffineExpr::default();
    }
    Ok(found)
}
