//! Transposes through shared memory: kernels that read arrays whose contiguous dimension is not the innermost loop.
//!
//! Along the innermost loop, adjacent threads would read elements with a large stride (no coalescing). A block
//! therefore computes a square tile of both loops. It reads the array's tile along the contiguous loop and writes it to
//! shared memory, from where each thread reads its elements. Rows of the tile are padded by one element, so that
//! neither direction has bank conflicts (G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009).

use std::collections::HashMap;
use std::fmt;

use inkwell::values::PointerValue;
use xla_hlo::{InstrId, Result};

use crate::elemental;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, SymbolId};
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::loops::plan::{LoopPlan, carrier};
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::{all_variables, counters, outer_variables};
use crate::fused::mode::{SharedSide, SharedTile};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::shared_transpose::{EDGE, MOST_BYTES, WARPS};
use crate::fused::value::Source;
use crate::lanes::{Lanes, Scalar};
use crate::simt::Register;

/// Loops of a kernel with tiles of two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedTranspose {
    plan: LoopPlan,
    /// Number of the loop that is tiled together with the innermost one.
    across: usize,
}

impl fmt::Display for SharedTranspose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, across loop {}", self.plan, self.across)
    }
}

impl Strategy for SharedTranspose {
    fn names() -> &'static [&'static str] {
        &["shared-transpose"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<SharedTranspose>> {
        let plan = choice.loop_plan()?;
        let is_transpose = || !choice.kernel.has_reductions() && !choice.kernel.source.in_place;
        let across = plan.across().filter(|_| is_transpose());
        Ok(across.map(|across| SharedTranspose { plan: plan.clone(), across }))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_shared_transpose(emitter, frame, self)
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of the function, with a block for each tile.
    fn emit_shared_transpose<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        &SharedTranspose { ref plan, across }: &SharedTranspose,
    ) -> Result<Launch> {
        let extents = plan.loops();
        let mut grid = extents.clone();
        let last = grid.len() - 1;
        for number in [across, last] {
            grid[number] = extents[number].div_ceil(EDGE);
        }
        let work_items: u64 = grid.iter().product();
        let threads = (EDGE * WARPS) as u32;
        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_work_items(WorkItems::Group { threads }, work_items, &mut |s, item| {
            let mut counters = counters(s, &AffineExpr::symbol(item), &grid)?;
            let lanes = counters.pop().unwrap_or_default().scaled(EDGE as i64);
            let rows = counters[across].clone().scaled(EDGE as i64);
            let thread = s.emitter.register(Register::Thread)?.zext(64);
            let (lane, warp) = (thread & (EDGE as i64 - 1), thread.lshr(i64::from(EDGE.ilog2())));
            let [first_lane, first_row] = [&lanes, &rows].map(|start| s.number_of(start));
            let (first_lane, first_row) = (s.lanes_of(first_lane?), s.lanes_of(first_row?));
            let side = |start: &AffineExpr, extent| SharedSide { start: start.clone(), extent, symbol: None };
            let tile = SharedTile {
                level: s.depth(),
                lane,
                warp,
                rows: side(&rows, extents[across]),
                lanes: side(&lanes, extents[last]),
                bytes: 0,
                buffers: HashMap::new(),
            };
            s.set_shared_tile(Some(tile));
            let at = first_lane + lane;
            s.when(at.ult(extents[last] as i64), &[], |s| {
                let lane = s.uniform_symbol(at, Some(extents[last]));
                let end = (first_row + EDGE as i64).smin(extents[across] as i64);
                let start = first_row + warp;
                let range = Range { start, end, extent: Some(extents[across]), width: 1, step: WARPS, whole: true };
                s.for_each(range, Vec::new(), &mut |s, row, _| {
                    let mut counters = counters.clone();
                    counters[across] = AffineExpr::symbol(row);
                    let symbols = outer_variables(s, plan, &counters)?;
                    let symbols = all_variables(s, plan, &symbols, Some(lane));
                    s.name_shared_tile(plan, across, &symbols);
                    self.store_all(s, &plan.index(&symbols)).map(|()| Vec::new())
                })
            })?;
            s.set_shared_tile(None);
            Ok(())
        })?;
        Ok(Launch { work_items, block: Some(threads) })
    }
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    fn current_shared_tile(&mut self) -> Option<&mut SharedTile<'e, 'ctx>> {
        self.mode.threads().and_then(|mode| mode.tile.as_mut())
    }

    fn set_shared_tile(&mut self, tile: Option<SharedTile<'e, 'ctx>>) {
        if let Some(mode) = self.mode.threads() {
            mode.tile = tile;
        }
    }

    /// Sets the variables of a plan that index the tile's rows and lanes.
    fn name_shared_tile(&mut self, plan: &LoopPlan, across: usize, symbols: &[SymbolId]) {
        let extents = plan.extents();
        let symbol = |group: Option<&std::ops::Range<usize>>| {
            group.and_then(|group| carrier(&extents, group)).map(|variable| symbols[variable])
        };
        if let Some(tile) = self.current_shared_tile() {
            tile.rows.symbol = symbol(plan.groups().get(across));
            tile.lanes.symbol = symbol(plan.groups().last());
        }
    }

    /// Returns the position in shared memory of the element at a position of an array. The tile is filled at first use.
    /// `None` for an element that is better read from global memory.
    pub(crate) fn in_shared_tile(
        &mut self,
        id: InstrId,
        source: &Source<'ctx>,
        at: &AffineExpr,
    ) -> Result<Option<(PointerValue<'ctx>, Lanes<'e, 'ctx>)>> {
        let Some(tile) = self.current_shared_tile() else { return Ok(None) };
        let (Some(row), Some(lane), level) = (tile.rows.symbol, tile.lanes.symbol, tile.level) else { return Ok(None) };
        let Some((rest, step)) = self.transposed(at, [row, lane], level) else { return Ok(None) };
        let Some(tile) = self.current_shared_tile() else { return Ok(None) };
        let (first_row, first_lane) = (tile.rows.start.clone(), tile.lanes.start.clone());
        let key = (id, rest.clone(), step);
        let buffer = match tile.buffers.get(&key) {
            Some(&known) => known,
            None => {
                let bytes = EDGE * (EDGE + 1) * source.shape.element_type().byte_width() as u64;
                if tile.bytes + bytes > MOST_BYTES {
                    return Ok(None);
                }
                let buffer = self.filled_tile(source, &rest, step, bytes)?;
                if let Some(tile) = self.current_shared_tile() {
                    tile.bytes += bytes;
                    tile.buffers.insert(key, buffer);
                }
                buffer
            }
        };
        let row = AffineExpr::symbol(row).plus(&first_row.scaled(-1));
        let lane = AffineExpr::symbol(lane).plus(&first_lane.scaled(-1));
        let number = self.number_of(&lane.scaled(EDGE as i64 + 1).plus(&row))?;
        Ok(Some((buffer, self.lanes_of(number))))
    }

    /// Fills shared memory with the tile's elements of an array; rows run along the array's contiguous loop. `rest` is
    /// the position of the array's element at index 0 of both loops.
    fn filled_tile(
        &mut self,
        source: &Source<'ctx>,
        rest: &AffineExpr,
        step: i64,
        bytes: u64,
    ) -> Result<PointerValue<'ctx>> {
        let Some(tile) = self.current_shared_tile() else { return Ok(source.base) };
        let (level, lane, warp, rows, lanes) =
            (tile.level, tile.lane, tile.warp, tile.rows.clone(), tile.lanes.clone());
        let ty = source.shape.element_type();
        self.at_level(level, |s| {
            let buffer = s.emitter.shared_array(Scalar::Int(8), bytes)?;
            let [first_lane, first_row] = [&lanes.start, &rows.start].map(|start| s.number_of(start));
            let (first_lane, first_row) = (s.lanes_of(first_lane?), s.lanes_of(first_row?));
            let exists = (first_row + lane).ult(rows.extent as i64);
            s.when(exists, &[], |s| {
                let row = s.uniform_symbol(lane, Some(EDGE));
                let end = (s.number(lanes.extent as i64) - first_lane).smin(EDGE as i64);
                let range = Range { start: warp, end, extent: Some(EDGE), width: 1, step: WARPS, whole: true };
                s.for_each(range, Vec::new(), &mut |s, place, _| {
                    let (row, place) = (AffineExpr::symbol(row), AffineExpr::symbol(place));
                    let along = place.clone().plus(&lanes.start).scaled(step);
                    let from = s.number_of(&rest.clone().plus(&row).plus(&rows.start).plus(&along))?;
                    let value = elemental::load(s.emitter, source.base, s.lanes_of(from), ty, 1, None);
                    let to = s.number_of(&place.scaled(EDGE as i64 + 1).plus(&row))?;
                    elemental::store(s.emitter, value, buffer, s.lanes_of(to), None);
                    Ok(Vec::new())
                })
            })?;
            s.emitter.barrier()?;
            Ok(buffer)
        })
    }
}
