//! Elementwise functions of scores.

use xla_hlo::{ElementType, InstrId, Result};

use super::kernel::AttentionKernel;
use crate::elemental::Value;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::variables::counters;
use crate::lanes::Lanes;

/// Value each of whose elements is computed from one score of each of some dots.
pub(crate) struct Function<'a, 'm> {
    pub value: InstrId,
    /// The dots. The first one determines the coordinates of the function's elements.
    pub of: Vec<Scores<'a, 'm>>,
}

/// Dot whose scores are an argument of a function.
pub(crate) struct Scores<'a, 'm> {
    pub matmul: &'a Matmul<'m>,
    /// Side of the dot that has the rows.
    pub rows: MatmulSide,
    /// Dimension of the dot for each dimension of the function; `None` for dimensions of size one.
    pub dims: &'a [Option<usize>],
}

impl<'m> Function<'_, 'm> {
    /// Returns the function's index at a row and a column, given the batch coordinates of the first dot.
    pub fn index(
        &self,
        s: &mut FusedEmitter<'_, '_, 'm>,
        batch: &[AffineExpr],
        [row, column]: [&AffineExpr; 2],
    ) -> Result<Index> {
        let Scores { matmul, rows, .. } = &self.of[0];
        let own = coordinates(s, row, &matmul.free[*rows as usize])?;
        Ok(self.index_at(batch, &own, column))
    }

    /// Returns the function's index at the coordinates of a row and a column of the first dot.
    pub fn index_at(&self, batch: &[AffineExpr], own: &[AffineExpr], column: &AffineExpr) -> Index {
        let Scores { matmul, rows, dims } = &self.of[0];
        let extents = &matmul.free[rows.other() as usize];
        let mut others = vec![AffineExpr::default(); extents.len()];
        let large = extents.iter().position(|&extent| extent != 1);
        if let Some(place) = others.get_mut(large.unwrap_or(0)) {
            *place = column.clone();
        }
        let index = match rows {
            MatmulSide::Left => matmul.result_index(batch, own, &others),
            MatmulSide::Right => matmul.result_index(batch, &others, own),
        };
        dims.iter().map(|d| d.map_or_else(AffineExpr::default, |d| index[d].clone())).collect()
    }

    /// Computes the function at an index as f32, given adjacent scores of all dots.
    pub fn value<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        index: &Index,
        scores: &[Value<'e, 'ctx>],
    ) -> Result<Lanes<'e, 'ctx>> {
        for (of, &score) in self.of.iter().zip(scores) {
            of.know(s, index, score)?;
        }
        let width = scores.first().map_or(1, Value::width);
        let value = s.element(self.value, index)?.splat(width);
        Ok(converted(s.emitter, value, ElementType::F32)?.lanes())
    }
}

impl<'m> AttentionKernel<'m> {
    /// Returns the operand of the softmax as a function of scores.
    pub(crate) fn logits(&self) -> Function<'_, 'm> {
        let scores = Scores { matmul: &self.scores, rows: self.sides()[0], dims: &self.parts.logit_dims };
        Function { value: self.parts.logits, of: vec![scores] }
    }
}

impl<'m> Scores<'_, 'm> {
    /// Returns the dot's index for an index of the function.
    pub fn index(&self, function: &Index) -> Index {
        let rank = self.matmul.batch.len() + self.matmul.free[0].len() + self.matmul.free[1].len();
        let mut index = vec![AffineExpr::default(); rank];
        for (d, at) in self.dims.iter().zip(function) {
            if let Some(d) = d {
                index[*d] = at.clone();
            }
        }
        index
    }

    /// Registers a score as the known value of the dot's element at an index of the function.
    fn know<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        function: &Index,
        score: Value<'e, 'ctx>,
    ) -> Result<()> {
        let ty = s.graph()[self.matmul.id].shape().expect_array()?.element_type();
        let value = converted(s.emitter, score, self.matmul.element_type)?;
        let value = converted(s.emitter, value, ty)?;
        s.values.insert((self.matmul.id, self.index(function), s.guard), vec![value]);
        Ok(())
    }
}

/// Returns the coordinates of a linear index. They are 0 along dimensions of size one, so that equal indices have equal
/// expressions as keys in the table of values.
pub(crate) fn coordinates(
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
