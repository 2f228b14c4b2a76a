//! Loop nest of a register-blocked GEMM: packs a block of columns, then multiplies row tiles by its panels.

use xla_hlo::Result;
use xla_hlo::ops::BinaryOp;
use xla_service::Optimize;

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::batch_matmul::{BatchMatmul, Panel};
use crate::fused::contraction::groups::packed_type;
use crate::fused::contraction::tiling::{Place, RegisterTiles};
use crate::fused::core::convolution::zero;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position, row_major_strides};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::counters;
use crate::fused::tuning::register_tiles::FEW_PIECES;

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the function's body and returns the number of work items.
    pub(crate) fn emit_register_tiles<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        tiles: &RegisterTiles,
    ) -> Result<u64> {
        let matmul = self.matmul()?.in_memory_order();
        let mut fused = self.bind(emitter, frame.pointers)?;
        let [rows, columns, sums, starts] = tiles.scratch();
        let (packed, sum) = (packed_type(tiles.groups, &matmul), matmul.accumulator_type);
        let panels = [
            Panel::new(&fused, packed, rows)?,
            Panel::new(&fused, packed, columns)?,
            Panel::new(&fused, sum, sums)?,
            Panel::new(&fused, sum, starts)?,
        ];
        let result = self.target(&fused, 0);
        let loops = tiles.items(&matmul.batch);
        let items = loops.iter().product();
        fused.for_work_items(frame.work_items, items, &mut |s, item| {
            let mut batch = counters(s, &AffineExpr::symbol(item), &loops)?;
            let (run, block) = (batch.pop().unwrap_or_default(), batch.pop().unwrap_or_default());
            let outer_rows = if tiles.all_rows { 0 } else { tiles.axes[0].outer.len() };
            let columns = batch.split_off(matmul.batch.len() + outer_rows);
            let rows = batch.split_off(matmul.batch.len());
            let outer = [rows, columns];
            let job = BatchMatmul {
                kernel: self,
                matmul: &matmul,
                tiles,
                panels: &panels,
                result: &result,
                batch,
                outer,
                first_column: AffineExpr::default(),
                part: AffineExpr::default(),
                first_k: AffineExpr::default(),
            };
            let parts = s.full_range(tiles.parts, 1);
            s.turns(parts, &mut |s, part| job.at(&job.outer[0], part).block(s, &block, &run))
        })?;
        Ok(items)
    }
}

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Emits the multiplication of a block of columns by a run of row tiles.
    fn block(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, block: &AffineExpr, run: &AffineExpr) -> Result<()> {
        let tiles = self.tiles;
        let [all_tiles, all_panels] = tiles.tiles();
        let (first_panel, first_tile) =
            (block.clone().scaled(tiles.block as i64), run.clone().scaled(tiles.run as i64));
        let panels = group(s, &first_panel, tiles.block, all_panels)?;
        let runs = group(s, &first_tile, tiles.run, all_tiles)?;
        let column = |s: &mut FusedEmitter<'e, 'ctx, 'm>, panel: &AffineExpr| {
            s.first_of(&first_panel.clone().plus(panel), tiles.columns(), tiles.axes[1].extent)
        };
        if tiles.places[1] != Place::Array {
            s.turns(panels, &mut |s, panel| {
                let column = column(s, panel)?;
                self.pack_columns(s, panel, &column)
            })?;
        }
        let inner_rows: &[u64] = if tiles.all_rows { &tiles.axes[0].outer } else { &[] };
        s.nested(inner_rows, 1, &mut Vec::new(), Vec::new(), &mut |s, outer, _| {
            let rows = if tiles.all_rows { outer } else { &self.outer[0] };
            let job = self.at(rows, &self.part);
            let first_tile_of_rows = position(outer, &row_major_strides(&sizes(inner_rows))).scaled(tiles.run as i64);
            s.turns(runs, &mut |s, tile| {
                let row = s.first_of(&first_tile.clone().plus(tile), tiles.rows, tiles.axes[0].extent)?;
                if tiles.places[0] != Place::Array {
                    job.pack_rows(s, &row)?;
                }
                let first = first_tile_of_rows.clone().plus(tile).scaled(tiles.block as i64);
                s.turns(panels, &mut |s, panel| {
                    let column = column(s, panel)?;
                    let kept = first.clone().plus(panel).scaled((tiles.rows * tiles.columns()) as i64);
                    let start = job.start(s, panel, &kept)?;
                    let sums = job.sums(s, &row, (panel, &column), &start)?;
                    job.keep_or_store(s, &kept, [&row, &column], &sums)
                })
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Returns the initial sums of a tile: zero, or the values that are packed with its panel; for later blocks of K
    /// plus the sums kept at `kept`.
    fn start(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        panel: &AffineExpr,
        kept: &AffineExpr,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let earlier = self.earlier_sums(s, kept)?;
        if self.panels[3].arrays.is_empty() {
            return Ok(earlier);
        }
        let starts = self.tiles.starts().into_iter().map(|start| start as i64);
        let place = panel.clone().scaled(self.tiles.columns() as i64);
        let columns = self.take(s, 3, &place, (starts, self.tiles.lanes as u32))?;
        let sums = earlier.iter().zip(columns.iter().cycle());
        sums.map(|(&sum, &start)| elemental::binary(s.emitter, BinaryOp::Add, sum, start)).collect()
    }

    /// Returns the sums of earlier blocks of K: zero for the first block, or the sums kept at `kept`.
    fn earlier_sums(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, kept: &AffineExpr) -> Result<Vec<Value<'e, 'ctx>>> {
        let (tiles, ty) = (self.tiles, self.matmul.accumulator_type);
        let zeros = vec![zero(s.emitter, ty).splat(tiles.lanes as u32); (tiles.rows * tiles.vectors) as usize];
        if tiles.parts == 1 {
            return Ok(zeros);
        }
        let types = vec![ty; zeros.len()];
        let is_later = s.number_of(&self.part)?;
        let is_later = s.lanes_of(is_later).gt(0);
        let raws = s.when(is_later, &raws_of(&zeros), |s| Ok(raws_of(&self.kept(s, kept)?)))?;
        Ok(values_of(s, &types, &raws))
    }

    /// Stores sums as results after the last block of K; otherwise keeps them for the next one.
    fn keep_or_store(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        kept: &AffineExpr,
        at: [&AffineExpr; 2],
        sums: &[Value<'e, 'ctx>],
    ) -> Result<()> {
        let parts = self.tiles.parts;
        if parts == 1 {
            return self.store(s, at, sums);
        }
        let number = s.number_of(&self.part)?;
        let last = parts as i64 - 1;
        s.when(s.lanes_of(number).lt(last), &[], |s| self.keep(s, kept, sums).map(|()| Vec::new()))?;
        s.when(s.lanes_of(number).eq(last), &[], |s| self.store(s, at, sums).map(|()| Vec::new()))?;
        Ok(())
    }
}

fn sizes(extents: &[u64]) -> Vec<usize> {
    extents.iter().map(|&extent| extent as usize).collect()
}

/// Returns the range of up to `size` numbers from `first` on, out of `total` numbers.
pub(crate) fn group<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    first: &AffineExpr,
    size: u64,
    total: u64,
) -> Result<Range<'e, 'ctx>> {
    let range = s.full_range(size.min(total), 1);
    if total.is_multiple_of(size) || total <= size {
        return Ok(range);
    }
    let first = s.number_of(first)?;
    let left = s.lanes_of(first) * -1 + total as i64;
    Ok(Range { end: left.smin(size as i64), ..range })
}

impl<'e, 'ctx> FusedEmitter<'e, 'ctx, '_> {
    /// Emits a loop without carried values; for a trip count of 1, only its body.
    pub(crate) fn turns(
        &mut self,
        range: Range<'e, 'ctx>,
        body: &mut dyn FnMut(&mut Self, &AffineExpr) -> Result<()>,
    ) -> Result<()> {
        if range.extent == Some(1) {
            return body(self, &AffineExpr::default());
        }
        self.for_each(range, Vec::new(), &mut |s, turn, _| body(s, &AffineExpr::symbol(turn)).map(|()| Vec::new()))?;
        Ok(())
    }

    /// Returns the first element of piece `number` of an extent in pieces of `size` elements. The last piece overlaps
    /// the one before, so that it is complete.
    pub(crate) fn first_of(&mut self, number: &AffineExpr, size: u64, extent: u64) -> Result<AffineExpr> {
        if size >= extent {
            return Ok(AffineExpr::default());
        }
        let first = number.clone().scaled(size as i64);
        if extent.is_multiple_of(size) {
            return Ok(first);
        }
        let (last, level) = (extent - size, self.depth());
        let first = self.number_of(&first)?;
        let first = self.lanes_of(first).smin(last as i64);
        Ok(self.computed(first, None, Some(last + 1), level))
    }

    /// Iterates over an extent in pieces of `size`; the last one may overlap the one before.
    pub(crate) fn pieces(
        &mut self,
        extent: u64,
        size: u64,
        body: &mut dyn FnMut(&mut Self, &AffineExpr) -> Result<()>,
    ) -> Result<()> {
        let count = extent.div_ceil(size);
        if count <= FEW_PIECES && self.emitter.options().optimize == Optimize::Speed {
            let first = |number: u64| (number * size).min(extent.saturating_sub(size));
            return (0..count).try_for_each(|number| body(self, &AffineExpr::constant(first(number) as i64)));
        }
        let range = self.full_range(count, 1);
        self.turns(range, &mut |s, number| {
            let first = s.first_of(number, size, extent)?;
            body(s, &first)
        })
    }
}
