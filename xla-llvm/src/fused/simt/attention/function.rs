//! Elementwise functions of scores at a thread's positions in a tile.

use xla_hlo::{ElementType, InstrId, Result};

use super::operand::clamped;
use super::plan::AttentionKernel;
use super::products::Sums;
use crate::elemental::Value;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::variables::counters;
use crate::lanes::Lanes;
use crate::mma::COLUMNS;

/// Value each of whose elements is computed from one score of each of some dots.
pub(super) struct Function<'a, 'm> {
    pub value: InstrId,
    /// The dots. The first one determines the coordinates of the function's elements.
    pub of: Vec<Scores<'a, 'm>>,
}

/// Dot whose scores are an argument of a function.
pub(super) struct Scores<'a, 'm> {
    pub matmul: &'a Matmul<'m>,
    /// Side of the dot that has the rows.
    pub rows: MatmulSide,
    /// Dimension of the dot for each dimension of the function; `None` for dimensions of size one.
    pub dims: &'a [Option<usize>],
}

/// Adjacent columns of a tile that a thread has in one matrix.
pub(super) struct Columns<'e, 'ctx> {
    /// The matrix, and the first of the thread's columns in it (0 or 1).
    place: [usize; 2],
    width: u32,
    at: AffineExpr,
    /// Mask of the columns that exist; `None` if all do.
    exist: Option<Lanes<'e, 'ctx>>,
}

impl<'e, 'ctx> Columns<'e, 'ctx> {
    /// Returns the thread's columns in tile number `tile` of `size` columns, out of `extent` columns.
    pub fn of_tile(
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        tile: &AffineExpr,
        member: &AffineExpr,
        [size, extent]: [u64; 2],
    ) -> Result<Vec<Columns<'e, 'ctx>>> {
        let width = if extent.is_multiple_of(2) { 2 } else { 1 };
        let first = tile.clone().scaled(size as i64).plus(&member.clone().scaled(2));
        let mut columns = Vec::new();
        for matrix in 0..(size / COLUMNS) as usize {
            for number in (0..2).step_by(width as usize) {
                let column = first.clone().shifted((matrix as u64 * COLUMNS) as i64 + number);
                let inside = column.bounds(&s.symbols).is_some_and(|(_, most)| most < extent as i64);
                let mut at = [clamped(s, column.clone(), extent - width)?];
                s.as_lanes(&mut at, width, &[extent])?;
                let [at] = at;
                let exist = if inside {
                    None
                } else {
                    let place = s.number_of(&column)?;
                    Some(s.lanes_of(place).lt(extent as i64).splat(width as u32))
                };
                columns.push(Columns { place: [matrix, number as usize], width: width as u32, at, exist });
            }
        }
        Ok(columns)
    }

    /// Returns the scores of these columns in the upper row (`half` 0) or the lower row (1).
    fn of(&self, scores: &[Sums<'e, 'ctx>], half: usize) -> Value<'e, 'ctx> {
        let [matrix, number] = self.place;
        let sums = &scores[matrix][2 * half..];
        let lanes = if self.width == 1 { sums[number] } else { sums[0].concat(sums[1]) };
        Value::new(ElementType::F32, lanes)
    }
}

impl<'m> Function<'_, 'm> {
    /// Returns the function's index at a row and a column, given the batch coordinates of the first dot.
    pub fn index(
        &self,
        s: &mut FusedEmitter<'_, '_, 'm>,
        batch: &[AffineExpr],
        [row, column]: [&AffineExpr; 2],
    ) -> Result<Index> {
        let Scores { matmul, rows, dims } = &self.of[0];
        let own = coordinates(s, row, &matmul.free[*rows as usize])?;
        let extents = &matmul.free[rows.other() as usize];
        let mut others = vec![AffineExpr::default(); extents.len()];
        let large = extents.iter().position(|&extent| extent != 1);
        if let Some(place) = others.get_mut(large.unwrap_or(0)) {
            *place = column.clone();
        }
        let index = match rows {
            MatmulSide::Left => matmul.result_index(batch, &own, &others),
            MatmulSide::Right => matmul.result_index(batch, &others, &own),
        };
        Ok(dims.iter().map(|d| d.map_or_else(AffineExpr::default, |d| index[d].clone())).collect())
    }

    /// Computes the function at a row for all columns, given the scores of all dots; `outside` is the value for columns
    /// that do not exist.
    pub fn values<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (batch, row): (&[AffineExpr], &AffineExpr),
        columns: &[Columns<'e, 'ctx>],
        (half, scores): (usize, &[Vec<Sums<'e, 'ctx>>]),
        outside: f64,
    ) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let mut values = Vec::new();
        for columns in columns {
            let index = self.index(s, batch, [row, &columns.at])?;
            let scores: Vec<_> = scores.iter().map(|scores| columns.of(scores, half)).collect();
            let mut lanes = self.value(s, &index, &scores)?;
            if let Some(exist) = columns.exist {
                lanes = exist.select(lanes, outside);
            }
            values.extend((0..columns.width).map(|lane| lanes.lane(lane)));
        }
        Ok(values)
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
    pub(super) fn logits(&self) -> Function<'_, 'm> {
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
