//! Tiles of operands that are both contiguous along K: each sum is a vector of lanes along K, reduced horizontally at
//! the end, so that no operand is packed.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::batch_matmul::BatchMatmul;
use crate::fused::contraction::groups::Groups;
use crate::fused::core::convolution::zero;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::Lanes;

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Computes the sums of a tile, given its first row and first column; each value holds a row of sums.
    pub fn sums_along_k(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        [row, column]: [&AffineExpr; 2],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (tiles, ty) = (self.tiles, self.matmul.accumulator_type);
        let (width, k) = (tiles.k_lanes, tiles.sums.extent);
        // The offset of rows is a further row, whose sums are subtracted from all other rows.
        let offsets_rows = tiles.groups.is_some_and(|groups| groups.instruction.offsets_rows());
        let count = ((tiles.rows + u64::from(offsets_rows)) * tiles.lanes) as usize;
        let types = vec![ty; count];
        let lanes = width / tiles.groups.map_or(1, Groups::size);
        let zeros = vec![zero(s.emitter, ty).splat(lanes as u32); count];
        let raws = s.nested(&[k / width], 1, &mut Vec::new(), raws_of(&zeros), &mut |s, turn, carried| {
            let totals = values_of(s, &types, carried);
            let first = turn.first().cloned().unwrap_or_default().scaled(width as i64);
            Ok(raws_of(&self.products(s, [row, column, &first], None, &totals)?))
        })?;
        let mut totals = values_of(s, &types, &raws);
        let rest = k % width;
        if rest > 0 {
            // Last vector of K, which overlaps the steps that were added before; the mask excludes those.
            let numbers = s.emitter.lane_numbers(32, width as u32);
            let new = numbers.ge((width - rest) as i64);
            let first = AffineExpr::constant((k - width) as i64);
            totals = self.products(s, [row, column, &first], Some(new), &totals)?;
        }
        if offsets_rows {
            let offsets = totals.split_off((tiles.rows * tiles.lanes) as usize);
            for (total, &offset) in totals.iter_mut().zip(offsets.iter().cycle()) {
                *total = elemental::binary(s.emitter, BinaryOp::Subtract, *total, offset)?;
            }
        }
        totals.chunks(tiles.lanes as usize).map(|row| lane_sums(s, ty, row)).collect()
    }

    /// Adds the products of one vector of K steps, restricted to the mask, to the sums.
    fn products(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        [row, column, first]: [&AffineExpr; 3],
        mask: Option<Lanes<'e, 'ctx>>,
        totals: &[Value<'e, 'ctx>],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let tiles = self.tiles;
        let sums = [first.clone()];
        let columns = self.lanes_of_k(s, 1, (column, tiles.lanes), &sums, mask)?;
        let mut rows = self.lanes_of_k(s, 0, (row, tiles.rows), &sums, mask)?;
        if let Some(groups) = tiles.groups.filter(|groups| groups.instruction.offsets_rows())
            && let Some(column) = columns.first()
        {
            rows.push(Value::new(column.element_type(), groups.instruction.row_offset(column.lanes())));
        }
        let pairs = rows.iter().flat_map(|&row| columns.iter().map(move |&column| (row, column)));
        pairs.zip(totals).map(|((row, column), &total)| self.add_products(s.emitter, total, [row, column])).collect()
    }

    /// Loads neighbours along K for several rows or columns.
    fn lanes_of_k(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        (free, count): (&AffineExpr, u64),
        sums: &[AffineExpr],
        mask: Option<Lanes<'e, 'ctx>>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (near, step) = self.strip(s, which, free, sums)?;
        let width = self.tiles.k_lanes as u32;
        let value = |number: i64| {
            let value = near.load(s, number * step, width);
            let value = if self.tiles.groups.is_some() { value } else { self.computed(s, value)? };
            let none = zero(s.emitter, value.element_type()).splat(width);
            let value = mask.map_or(value, |mask| elemental::select_lanes(mask, value, none));
            match self.tiles.groups {
                Some(groups) => Ok(Value::new(self.packed_type(), groups.instruction.joined(which, value)?)),
                None => Ok(value),
            }
        };
        (0..count as i64).map(value).collect()
    }
}

/// Reduces each value horizontally and returns the sums as lanes: each step adds halves of two values.
fn lane_sums<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    ty: ElementType,
    values: &[Value<'e, 'ctx>],
) -> Result<Value<'e, 'ctx>> {
    let mut lanes: Vec<Lanes<'e, 'ctx>> = values.iter().map(Value::lanes).collect();
    let mut group = lanes.first().map_or(1, |first| first.width());
    while group > 1 {
        let halves = |pair: &[Lanes<'e, 'ctx>]| {
            let (x, y) = (pair[0], pair[pair.len() - 1]);
            let all = x.width() * pair.len() as u32;
            let half =
                |high: bool| -> Vec<u32> { (0..all).filter(|lane| (lane % group >= group / 2) == high).collect() };
            let [low, high] = [false, true].map(|high| Value::new(ty, x.shuffle(y, &half(high))));
            Ok(elemental::binary(s.emitter, BinaryOp::Add, low, high)?.lanes())
        };
        lanes = lanes.chunks(2).map(halves).collect::<Result<_>>()?;
        group /= 2;
    }
    Ok(Value::new(ty, lanes[0]))
}
