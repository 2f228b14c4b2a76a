//! Tiled matmuls: one output tile per block of threads.
//!
//! The operands' tiles are double-buffered in shared memory, some steps of K at a time, converted to the accumulator
//! type. Loads of the next steps overlap with the computation of the current ones. Each thread has a small matrix of
//! accumulators in registers, and computes the epilogue from these. The scheme is that of Volkov and Demmel
//! (Benchmarking GPUs to tune dense linear algebra, 2008). On tensor cores, 16-bit floats are stored unconverted, and
//! f32 is rounded to TF32 once, when it is stored to shared memory: see `mma.rs`.

use xla_hlo::Result;

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::core::addressing::Addressing;
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, Symbol};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::cut::Sink;
use crate::fused::simt::matmul::mma::WarpPlace;
use crate::fused::simt::matmul::multistage::pipeline::Multistage;
use crate::fused::simt::matmul::tile::{Part, Tile};
use crate::fused::simt::matmul::tiling::{Feed, Tiling};
use crate::fused::simt::matmul::wgmma::tile::WgmmaTile;
use crate::fused::tuning::matmul::SIDE;
use crate::fused::value::SymbolValue;
use crate::simt::Register;

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of a tiled matmul kernel; a block computes a tile of the result.
    pub(crate) fn emit_matmul<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        matmul: &Matmul<'m>,
        tiling: Tiling,
    ) -> Result<Launch> {
        if tiling.unit.is_none() || tiling.feed == Feed::Wgmma {
            // By default ptxas spills registers to raise occupancy.
            emitter.allow_all_registers();
        }
        let work_items = tiling.tiles(matmul) * tiling.cut.parts;
        let scratch = frame.pointers.last().copied();
        let mut s = self.bind(emitter, frame.pointers)?;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let item = s.uniform_symbol(block?.zext(64), Some(work_items));
        let [rows, columns] = [MatmulSide::Left, MatmulSide::Right].map(|side| tiling.along(matmul, side));
        // Adjacent blocks share a column of tiles, or a few of them, so that the right operand stays in the cache.
        let across = tiling.across(columns);
        // Parts and batches, the outermost loop, are what is left of the number.
        let loops = [1, columns / across, rows, across];
        let at = counters(&mut s, &AffineExpr::symbol(item), &loops)?;
        let at = [at[0].clone(), at[1].clone().scaled(across as i64).plus(&at[3]), at[2].clone()];
        let (part, batch) = tiling.cut.divide(&mut s, &at[0], matmul.batches())?;
        let batch = counters(&mut s, &batch, &matmul.batch)?;
        let thread = AffineExpr::symbol(s.uniform_symbol(thread?.zext(64), Some(tiling.threads())));
        let (place, tiles) = ((&batch[..], &part), [&at[2], &at[1]]);
        let sink = Sink::new(matmul, &batch, tiling.cut, (&at[0], scratch))?;
        let results = match tiling.feed {
            Feed::Wgmma => {
                WgmmaTile::new(&mut s, (matmul, tiling), place, tiles, &thread)?.emit(&mut s, self, &sink)?;
                Vec::new()
            }
            Feed::Multistage => Multistage::new(&mut s, (matmul, tiling), place, tiles, &thread)?.results(&mut s)?,
            Feed::Registers => sums_through_registers(&mut s, (matmul, tiling), place, tiles, &thread)?,
        };
        for ([row, column], sum) in &results {
            self.store_vector(&mut s, &sink, [row, column], *sum)?;
        }
        Ok(Launch { work_items, block: Some(tiling.threads() as u32) })
    }

    /// Computes the epilogue of adjacent sums of a row and stores the results: as one vector if its width divides the
    /// last dimension of N, otherwise lane by lane.
    pub(crate) fn store_vector<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        sink: &Sink<'_, 'ctx, 'm>,
        [row, column]: [&AffineExpr; 2],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let last = sink.matmul.free[1].last().copied().unwrap_or(1);
        let together = if last.is_multiple_of(sum.width().into()) { sum.width() } else { 1 };
        for first in (0..sum.width()).step_by(together as usize) {
            let at = [row.clone(), column.clone().shifted(first.into())];
            self.store_sums(s, sink, at, sum.slice(first, together))?;
        }
        Ok(())
    }

    /// Stores adjacent sums of a row, given the row and the first column, unless they are outside the result. Whole
    /// sums go through the epilogue, partial sums to scratch memory.
    pub(crate) fn store_sums<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        sink: &Sink<'_, 'ctx, 'm>,
        at: [AffineExpr; 2],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let extents = [MatmulSide::Left, MatmulSide::Right].map(|side| sink.matmul.extent(side));
        let mut inside = None;
        for (at, extent) in at.iter().zip(extents) {
            s.require_up_to(&mut inside, at, extent as i64 - 1)?;
        }
        let inside = inside.map_or(s.number(0).eq(0), |guard| guard.mask);
        s.when(inside, &[], |s| {
            // New symbols, so that computations that depend on them are not hoisted above the branch.
            let mut exprs = Vec::with_capacity(2);
            for (at, extent) in at.iter().zip(extents) {
                let number = s.number_of(at)?;
                exprs.push(AffineExpr::symbol(s.uniform_symbol(s.lanes_of(number), Some(extent))));
            }
            match &sink.part {
                Some(part) => part.store(s, sink.matmul, &exprs, sum)?,
                None => self.store_results(s, (sink.matmul, sink.batch), &exprs, sum)?,
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Computes the epilogue of adjacent sums of a row, given the row and the first column, and stores the results.
    pub(crate) fn store_results<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, batch): (&Matmul<'m>, &[AffineExpr]),
        at: &[AffineExpr],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let rows = counters(s, &at[0], &matmul.free[0])?;
        let mut columns = counters(s, &at[1], &matmul.free[1])?;
        s.as_lanes(&mut columns, sum.width().into(), &matmul.free[1])?;
        let index = matmul.result_index(batch, &rows, &columns);
        let value = converted(s.emitter, sum, matmul.element_type)?;
        let result = s.graph()[matmul.id].shape().expect_array()?.element_type();
        let value = converted(s.emitter, value, result)?;
        s.values.insert((matmul.id, index.clone(), 0), vec![value]);
        self.store_all(s, &index)
    }
}

/// Computes a thread's sums with operands that are loaded to registers and then stored to shared memory. Returns
/// vectors of sums, with the row and the first column of each.
fn sums_through_registers<'e, 'ctx, 'm>(
    s: &mut FusedEmitter<'e, 'ctx, 'm>,
    (matmul, tiling): (&Matmul<'m>, Tiling),
    (batch, part): (&[AffineExpr], &AffineExpr),
    [row, column]: [&AffineExpr; 2],
    thread: &AffineExpr,
) -> Result<Vec<([AffineExpr; 2], Value<'e, 'ctx>)>> {
    let warp = tiling.unit.map(|unit| Ok((unit, WarpPlace::new(s, tiling, thread)?))).transpose()?;
    let own = match &warp {
        Some((_, place)) => (place.row.clone(), place.column.clone()),
        None => s.divide(thread, SIDE as i64)?,
    };
    let left = Part::new(s, matmul, tiling, MatmulSide::Left, row, (thread, &own.0))?;
    let right = Part::new(s, matmul, tiling, MatmulSide::Right, column, (thread, &own.1))?;
    let tile = Tile { matmul, tiling, batch: batch.to_vec(), part: part.clone(), parts: [left, right] };
    match &warp {
        None => {
            let add = &mut |s: &FusedEmitter<'e, 'ctx, 'm>, halves, sums: &mut [_]| tile.add(s, halves, sums);
            let sums = tile.sums(s, tile.vectors(), add)?;
            Ok(tile.places([&own.0, &own.1]).into_iter().zip(sums).collect())
        }
        Some((unit, place)) => {
            let read = tile.fragments(s, place)?;
            let add = &mut |s: &FusedEmitter<'e, 'ctx, 'm>, halves, sums: &mut [_]| {
                tile.multiply_by_warps(s, *unit, (read, halves), sums)
            };
            let sums = tile.sums(s, tile.warp_vectors(), add)?;
            Ok(tile.warp_results(place, &sums))
        }
    }
}

impl<'e, 'ctx> FusedEmitter<'e, 'ctx, '_> {
    /// Vectorizes the last coordinate: replaces it by `width` consecutive ones, starting with itself.
    pub(crate) fn as_lanes(&mut self, exprs: &mut [AffineExpr], width: u64, extents: &[u64]) -> Result<()> {
        let (Some(last), Some(&extent), true) = (exprs.last_mut(), extents.last(), width > 1) else { return Ok(()) };
        let number = self.number_of(last)?;
        let value = SymbolValue::Lane { base: self.lanes_of(number), width: width as u32, mask: None };
        let level = last.level(&self.symbols);
        *last = AffineExpr::symbol(self.define(Symbol { extent: Some(extent), level }, value));
        Ok(())
    }
}
