//! Loops of a matmul by register tiles: a block of columns is packed, then tiles of rows go over its panels.

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::job::{Job, Panel};
use crate::fused::contraction::tiling::{Place, RegisterTiles};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::counters;

impl<'m> FusedKernel<'_, 'm> {
    /// Writes the function's body and returns the number of work items.
    pub(crate) fn emit_register_tiles<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        tiles: &RegisterTiles,
    ) -> Result<u64> {
        let matmul = self.matmul()?;
        let mut fused = self.bind(emitter, frame.pointers)?;
        let [rows, columns] = tiles.scratch();
        let panels = [Panel::new(&fused, &matmul, rows)?, Panel::new(&fused, &matmul, columns)?];
        let result = self.target(&fused, 0);
        let loops = tiles.items(&matmul.batch);
        let items = loops.iter().product();
        fused.for_work_items(frame.work_items, items, &mut |s, item| {
            let mut batch = counters(s, &AffineExpr::symbol(item), &loops)?;
            let (run, block) = (batch.pop().unwrap_or_default(), batch.pop().unwrap_or_default());
            let columns = batch.split_off(matmul.batch.len() + tiles.axes[0].outer.len());
            let rows = batch.split_off(matmul.batch.len());
            let outer = [rows, columns];
            let job = Job { matmul: &matmul, tiles, panels: &panels, result: &result, batch, outer };
            job.block(s, &block, &run)
        })?;
        Ok(items)
    }
}

impl<'e, 'ctx, 'm> Job<'_, 'ctx, 'm> {
    /// A block of columns against a run of tiles.
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
        s.turns(runs, &mut |s, tile| {
            let row = s.first_of(&first_tile.clone().plus(tile), tiles.rows, tiles.axes[0].extent)?;
            if tiles.places[0] != Place::Array {
                self.pack_rows(s, &row)?;
            }
            s.turns(panels, &mut |s, panel| {
                let column = column(s, panel)?;
                let sums = self.sums(s, &row, (panel, &column))?;
                self.store(s, [&row, &column], &sums)
            })
        })
    }
}

/// Numbers within a group of `size` from `first` on, of `total` in all.
fn group<'e, 'ctx>(
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
    /// A loop that carries nothing; none for a range of a single turn.
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

    /// The first element of the piece of that number, of `size` elements each: the last one begins early enough to have
    /// as many.
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

    /// Goes over an extent in pieces of `size`; the last one may overlap the one before.
    pub(crate) fn pieces(
        &mut self,
        extent: u64,
        size: u64,
        body: &mut dyn FnMut(&mut Self, &AffineExpr) -> Result<()>,
    ) -> Result<()> {
        let range = self.full_range(extent.div_ceil(size), 1);
        self.turns(range, &mut |s, number| {
            let first = s.first_of(number, size, extent)?;
            body(s, &first)
        })
    }
}
