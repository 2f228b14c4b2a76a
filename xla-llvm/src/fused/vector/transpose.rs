//! Tiled transposes: kernels that read arrays which are contiguous along a loop other than the innermost.
//!
//! Along the innermost loop, each element of such an array would be in a different cache line. Therefore, the kernel
//! tiles both loops by squares. The elements of the array for a tile are loaded contiguously, transposed in registers,
//! and stored to a buffer in scratch memory. The kernel then reads the buffer contiguously along the innermost loop.

use std::collections::HashMap;
use std::fmt;

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::core::address::Number;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, Symbol, SymbolId};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::plan::{LoopPlan, carrier};
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::{counters, outer_variables};
use crate::fused::mode::{Tile, TileSide};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::vector::{LARGEST_BLOCK, MOST_BUFFERS, SMALLEST_BLOCK};
use crate::fused::value::{Source, SymbolValue};
use crate::lanes::{Lanes, Scalar};

/// Function that emits one row of a tile, given the counters of all loops and the range of the row's lanes.
type Row<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr], Range<'e, 'ctx>) -> Result<()> + 'a;

/// Partition of a plan's loops into tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TileGrid {
    plan: LoopPlan,
    /// Lanes of the innermost loop.
    width: u32,
    /// Side of a tile, in elements.
    edge: u64,
    /// Number of the loop whose iterations are a tile's rows.
    across: usize,
    /// Extents of the loops over tiles, outermost first. The last one follows the array that is read, which improves
    /// the locality of its pages and cache lines; the plan's innermost loop is in front of it.
    loops: Vec<u64>,
}

impl TileGrid {
    /// Creates the tiles for a plan that has a loop `across`.
    pub fn new(plan: LoopPlan, across: usize, widest_bits: u32, width: u32) -> TileGrid {
        // Rows of four cache lines in a buffer that fits the L1 cache; at least one vector of lanes.
        let edge = (4 * 64 * 8 / u64::from(widest_bits.max(1))).clamp(32, 128).max(width.into());
        let mut loops = plan.loops();
        let rows = loops.remove(across).div_ceil(edge);
        if let Some(lanes) = loops.last_mut() {
            *lanes = lanes.div_ceil(edge);
        }
        loops.push(rows);
        TileGrid { plan, width, edge, across, loops }
    }

    /// Returns the number of tiles.
    pub(crate) fn tiles(&self) -> u64 {
        self.loops.iter().product()
    }
}

impl fmt::Display for TileGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} lanes, tiles of {} across loop {}", self.plan, self.width, self.edge, self.across)
    }
}

impl Strategy for TileGrid {
    fn names() -> &'static [&'static str] {
        &["vector-transpose"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<TileGrid>> {
        let (kernel, plan) = (choice.kernel, choice.loop_plan()?);
        let Some(across) = plan.across().filter(|_| !kernel.has_reductions()) else { return Ok(None) };
        let width = kernel.vector_width(choice.target(), plan);
        Ok((width > 1).then(|| TileGrid::new(plan.clone(), across, kernel.widest_bits(), width)))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_vector_transpose(emitter, frame, self).map(Launch::alone)
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the function's body, whose work items are tiles, and returns their number.
    pub(crate) fn emit_vector_transpose<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        grid: &TileGrid,
    ) -> Result<u64> {
        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_work_items(frame.work_items, grid.tiles(), &mut |s, item| {
            let counters = counters(s, &AffineExpr::symbol(item), &grid.loops)?;
            s.tile(grid, counters, &mut |s, counters, range| {
                let outer = outer_variables(s, &grid.plan, counters)?;
                self.lanes_loop(s, &grid.plan, &outer, range)
            })
        })?;
        Ok(grid.tiles())
    }
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Iterates over the rows of the tile at `counters` (one per loop of the grid); `row` receives the counters of all
    /// loops and the range of the row's lanes.
    pub(crate) fn tile(
        &mut self,
        grid: &TileGrid,
        mut counters: Vec<AffineExpr>,
        row: &mut Row<'_, 'e, 'ctx, 'm>,
    ) -> Result<()> {
        let extents = grid.plan.loops();
        let (rows, lanes) = (counters.pop().unwrap_or_default(), counters.pop().unwrap_or_default());
        counters.insert(grid.across, AffineExpr::default());
        let lanes = self.side(&lanes, grid.edge, extents[counters.len()], grid.width)?;
        let rows = self.side(&rows, grid.edge, extents[grid.across], 1)?;
        let (row_range, lane_range) = (rows.range, lanes.range);
        let tile = Tile { edge: grid.edge, level: self.depth(), rows, lanes, buffers: HashMap::new() };
        self.set_tile(Some(tile));
        self.for_each(row_range, Vec::new(), &mut |s, symbol, _| {
            counters[grid.across] = AffineExpr::symbol(symbol);
            row(s, &counters, lane_range)?;
            Ok(Vec::new())
        })?;
        self.set_tile(None);
        Ok(())
    }

    fn current_tile(&mut self) -> Option<&mut Tile<'e, 'ctx>> {
        self.mode.vector().and_then(|mode| mode.tile.as_mut())
    }

    fn set_tile(&mut self, tile: Option<Tile<'e, 'ctx>>) {
        if let Some(mode) = self.mode.vector() {
            mode.tile = tile;
        }
    }

    fn side(&mut self, tile: &AffineExpr, edge: u64, extent: u64, width: u32) -> Result<TileSide<'e, 'ctx>> {
        let start = tile.clone().scaled(edge as i64);
        let number = self.number_of(&start)?;
        let first = self.lanes_of(number);
        let end = first + edge as i64;
        let end = if extent.is_multiple_of(edge) { end } else { end.smin(extent as i64) };
        let whole = extent.is_multiple_of(u64::from(width));
        Ok(TileSide {
            start,
            range: Range { start: first, end, extent: Some(extent), width, step: width.into(), whole },
            symbol: None,
        })
    }

    /// Sets the symbols of the tile's directions to the current symbols of the plan's variables.
    pub(crate) fn name_tile(&mut self, plan: &LoopPlan, symbols: &[SymbolId]) {
        let (Some(tile), Some(across)) = (self.current_tile(), plan.across()) else { return };
        let extents = plan.extents();
        let symbol = |group: Option<&std::ops::Range<usize>>| {
            group.and_then(|group| carrier(&extents, group)).map(|variable| symbols[variable])
        };
        tile.rows.symbol = symbol(plan.groups().get(across));
        tile.lanes.symbol = symbol(plan.groups().last());
    }

    /// Returns the place of an array position in one of the tile's buffers, which is filled at first use; `None` for
    /// lanes that are better read directly from the array.
    pub(crate) fn in_tile(
        &mut self,
        id: InstrId,
        source: &Source<'ctx>,
        at: &AffineExpr,
    ) -> Result<Option<(PointerValue<'ctx>, Lanes<'e, 'ctx>, u32)>> {
        let Some(tile) = self.current_tile() else { return Ok(None) };
        let (Some(row), Some(lane), level) = (tile.rows.symbol, tile.lanes.symbol, tile.level) else { return Ok(None) };
        let Some((rest, step)) = self.transposed(at, [row, lane], level) else { return Ok(None) };
        let Some(tile) = self.current_tile() else { return Ok(None) };
        let edge = tile.edge as i64;
        let (first_row, first_lane) = (tile.rows.start.clone(), tile.lanes.start.clone());
        let key = (id, rest.clone(), step);
        let buffer = match tile.buffers.get(&key) {
            Some(&known) => known,
            None if tile.buffers.len() == MOST_BUFFERS => return Ok(None),
            None => self.filled_buffer(source, &rest, step)?,
        };
        if let Some(tile) = self.current_tile() {
            tile.buffers.insert(key, buffer);
        }
        let row = AffineExpr::symbol(row).plus(&first_row.scaled(-1)).scaled(edge);
        let place = row.plus(&AffineExpr::symbol(lane)).plus(&first_lane.scaled(-1));
        Ok(match self.number_of(&place)? {
            Number::Strided { base, stride: 1, width } => Some((buffer, base, width)),
            Number::Uniform(base) => Some((buffer, base, 1)),
            Number::Strided { .. } | Number::Varying(_) => None,
        })
    }

    /// Emits a buffer with the tile's elements of an array in rows of lanes; `rest` is the position of the array's
    /// first element.
    fn filled_buffer(&mut self, source: &Source<'ctx>, rest: &AffineExpr, step: i64) -> Result<PointerValue<'ctx>> {
        let form = BlockForm::of(self, source.shape.element_type());
        let Some(tile) = self.current_tile() else { return Ok(source.base) };
        let (edge, level, rows, lanes) = (tile.edge, tile.level, tile.rows.clone(), tile.lanes.clone());
        let whole = |range: Range<'_, '_>| range.extent.is_some_and(|e| e % u64::from(form.block) == 0);
        let turns = |side: &TileSide<'e, 'ctx>| Range {
            width: form.block,
            step: form.block.into(),
            whole: whole(side.range),
            ..side.range
        };
        let buffer = self.emitter.scratch_array(form.scalar, edge * edge * u64::from(form.parts))?;
        self.at_level(level, |s| {
            s.for_each(turns(&lanes), Vec::new(), &mut |s, lane, _| {
                s.for_each(turns(&rows), Vec::new(), &mut |s, row, _| {
                    let (lane, partial_lanes) = s.block_side(lane, &lanes);
                    let (row, partial_rows) = s.block_side(row, &rows);
                    let from = rest.clone().plus(&row).plus(&lane.clone().scaled(step));
                    let columns = s.block_columns(source, form, &from, step, partial_lanes, partial_rows)?;
                    let to = row.plus(&rows.start.clone().scaled(-1)).scaled(edge as i64);
                    let to = to.plus(&lane).plus(&lanes.start.clone().scaled(-1));
                    let number = s.number_of(&to)?;
                    let first = s.lanes_of(number);
                    for (number, column) in columns.into_iter().enumerate() {
                        let place = (first + number as i64 * edge as i64) * i64::from(form.parts);
                        s.emitter.store_lanes(column, buffer, place, None);
                    }
                    Ok(Vec::new())
                })?;
                Ok(Vec::new())
            })
        })?;
        Ok(buffer)
    }

    /// Returns the first element of a block along a side, and the extent if the block is partial.
    fn block_side(&mut self, symbol: SymbolId, side: &TileSide<'e, 'ctx>) -> (AffineExpr, Option<Partial<'e, 'ctx>>) {
        let Symbol { extent, level } = self.symbols.get(symbol);
        let (SymbolValue::Lane { base, .. } | SymbolValue::Uniform(base) | SymbolValue::Varying { lanes: base, .. }) =
            self.symbol_value(symbol);
        let mask = self.existing_lanes(&[AffineExpr::symbol(symbol)]);
        let start = AffineExpr::symbol(self.define(Symbol { extent, level }, SymbolValue::Uniform(base)));
        (start, mask.map(|mask| Partial { left: side.range.end - base, mask }))
    }

    /// Loads a block of an array and returns its columns. The block has one row per lane of the tile, with the tile's
    /// rows as elements; rows are `step` elements apart in memory, the first at `from`.
    fn block_columns(
        &mut self,
        source: &Source<'ctx>,
        form: BlockForm,
        from: &AffineExpr,
        step: i64,
        partial_lanes: Option<Partial<'e, 'ctx>>,
        partial_rows: Option<Partial<'e, 'ctx>>,
    ) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let number = self.number_of(from)?;
        let first = self.lanes_of(number);
        let parts = i64::from(form.parts);
        let whole = |Partial { mask, .. }| if form.parts == 1 { mask } else { mask.interleave(mask) };
        let mask = partial_rows.map(whole);
        let row = |row: u32| {
            let at = match partial_lanes {
                None => first + i64::from(row) * step,
                // Missing rows are replaced by the last row that exists.
                Some(Partial { left, .. }) => first + (left - 1).smin(i64::from(row)) * step,
            };
            self.emitter.load_lanes(source.base, at * parts, form.scalar, form.block * form.parts, mask)
        };
        Ok(Lanes::transposed((0..form.block).map(row).collect(), form.parts))
    }
}

/// Side of a partial block.
#[derive(Clone, Copy)]
struct Partial<'e, 'ctx> {
    /// Number of elements that exist.
    left: Lanes<'e, 'ctx>,
    /// Mask of the elements that exist.
    mask: Lanes<'e, 'ctx>,
}

/// Register format of blocks of an element type.
#[derive(Clone, Copy)]
struct BlockForm {
    /// Side of a block, in elements.
    block: u32,
    /// Integer type of an element, or of half of one.
    scalar: Scalar,
    /// Number of such integers in an element.
    parts: u32,
}

impl BlockForm {
    fn of(emitter: &FusedEmitter<'_, '_, '_>, ty: ElementType) -> BlockForm {
        let bits = 8 * ty.byte_width() as u32;
        let block = emitter.emitter.target().lanes(bits).clamp(SMALLEST_BLOCK, LARGEST_BLOCK);
        let parts = bits.div_ceil(64);
        BlockForm { block, scalar: Scalar::Int(bits / parts), parts }
    }
}
