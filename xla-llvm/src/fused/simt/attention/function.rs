//! Functions of scores at a thread's places in a tile.

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

/// A value whose elements are each computed from one score of each of some dots.
pub(super) struct Function<'a, 'm> {
    pub value: InstrId,
    /// The dots, the first of which tells where the function's elements are.
    pub of: Vec<Scores<'a, 'm>>,
}

/// A dot that a function is of.
pub(super) struct Scores<'a, 'm> {
    pub matmul: &'a Matmul<'m>,
    /// The side that has the rows.
    pub rows: MatmulSide,
    /// For each dimension of the function the dot's that it is; nothing for one of a single element.
    pub dims: &'a [Option<usize>],
}

/// Neighbouring columns of a tile that a thread has in one matrix.
pub(super) struct Columns<'e, 'ctx> {
    /// The matrix, and the first of its two columns.
    place: [usize; 2],
    width: u32,
    at: AffineExpr,
    /// Whether they exist, where some may not.
    exist: Option<Lanes<'e, 'ctx>>,
}

impl<'e, 'ctx> Columns<'e, 'ctx> {
    /// Those of a thread in the tile of that number, of `size` columns, of `extent` in all.
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

    /// Scores of these columns in the upper row, 0, or the lower one, 1.
    fn of(&self, scores: &[Sums<'e, 'ctx>], half: usize) -> Value<'e, 'ctx> {
        let [matrix, number] = self.place;
        let sums = &scores[matrix][2 * half..];
        let lanes = if self.width == 1 { sums[number] } else { sums[0].concat(sums[1]) };
        Value::new(ElementType::F32, lanes)
    }
}

impl<'m> Function<'_, 'm> {
    /// The function's index at a row and a column, with the coordinates of the first dot's batch.
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

    /// The function at a row, by columns, given all dots' scores; `outside` for columns that do not exist.
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

    /// The function at an index, as f32, given neighbouring scores of all dots there.
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
    /// The softmax's operand, as a function of scores.
    pub(super) fn logits(&self) -> Function<'_, 'm> {
        let scores = Scores { matmul: &self.scores, rows: self.sides()[0], dims: &self.parts.logit_dims };
        Function { value: self.parts.logits, of: vec![scores] }
    }
}

impl<'m> Scores<'_, 'm> {
    /// The dot's index where the function's is given.
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

    /// Tells what the dot's elements are where the function's index is given.
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
