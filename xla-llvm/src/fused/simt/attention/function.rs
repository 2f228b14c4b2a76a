//! Elementwise functions of scores at a thread's positions in a tile.

use xla_hlo::{ElementType, Result};

use super::operand::clamped;
use super::products::Sums;
use crate::elemental::Value;
use crate::fused::contraction::attention::function::Function;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::Lanes;
use crate::mma::COLUMNS;

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
    /// Computes the function at a row for all columns, given the scores of all dots; `outside` is the value for columns
    /// that do not exist.
    pub(super) fn values<'e, 'ctx>(
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
}
