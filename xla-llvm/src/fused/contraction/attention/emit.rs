//! Loop nest of an attention with register tiles: blocks of keys, and tiles of queries inside of them.

use xla_hlo::{ElementType, Result};

use super::kernel::AttentionKernel;
use super::plan::{BlockTiles, RegisterAttention};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::function::coordinates;
use crate::fused::contraction::batch_matmul::{BatchMatmul, Panel};
use crate::fused::contraction::blocks::group;
use crate::fused::contraction::groups::packed_type;
use crate::fused::contraction::matmul::MatmulSide;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::frame::Frame;
use crate::fused::value::Source;

/// Scratch memory of a work item.
pub(super) struct Memory<'ctx> {
    /// Panels of the GEMM of scores: packed queries of a tile, packed keys of a block.
    scores: [Panel<'ctx>; 4],
    /// Panels of the GEMM of results: exponentials of a tile, packed values of a block, sums of all tiles of the run.
    results: [Panel<'ctx>; 4],
    /// Scores and logits of a tile; also its exponentials, unless these are packed in groups.
    pub logits: Panel<'ctx>,
    /// Largest logit of each row of the run.
    pub largest: Panel<'ctx>,
    /// Sum of the exponentials of each row of the run.
    pub totals: Panel<'ctx>,
    /// Factors that rescale the earlier sums of the tile's rows.
    pub scales: Panel<'ctx>,
}

impl<'ctx> Memory<'ctx> {
    /// Returns the memory of the sums of all tiles of the run.
    pub fn sums(&self) -> &Panel<'ctx> {
        &self.results[2]
    }

    fn new(s: &FusedEmitter<'_, 'ctx, '_>, attention: &AttentionKernel<'_>, plan: &RegisterAttention) -> Result<Self> {
        let all = [Some(&plan.full), plan.rest.as_ref()];
        let most = |size: &dyn Fn(&BlockTiles) -> u64| all.into_iter().flatten().map(size).max().unwrap_or(0);
        let BlockTiles { scores, results, .. } = &plan.full;
        let none = || Panel { arrays: Vec::new() };
        let floats = |count: u64| Panel::new(s, ElementType::F32, count);
        let rows = plan.run * scores.rows;
        let logits = floats(scores.rows * most(&BlockTiles::pitch))?;
        let exponentials = match results.groups {
            Some(_) => Panel::new(s, ElementType::S32, most(&|tiles| tiles.results.scratch()[0]))?,
            None => Panel { arrays: logits.arrays.clone() },
        };
        let packed = packed_type(scores.groups, &attention.scores);
        let packed_value = packed_type(results.groups, &attention.result);
        Ok(Memory {
            scores: [
                Panel::new(s, packed, most(&|tiles| tiles.scores.scratch()[0]))?,
                Panel::new(s, packed, most(&|tiles| tiles.scores.scratch()[1]))?,
                none(),
                none(),
            ],
            results: [
                exponentials,
                Panel::new(s, packed_value, most(&|tiles| tiles.results.scratch()[1]))?,
                floats(plan.run * plan.full.sums())?,
                none(),
            ],
            logits,
            largest: floats(rows)?,
            totals: floats(rows)?,
            scales: floats(scores.rows)?,
        })
    }
}

/// Run of query tiles that a work item computes.
pub(super) struct QueryRun<'a, 'ctx, 'm> {
    pub kernel: &'a FusedKernel<'a, 'm>,
    pub attention: &'a AttentionKernel<'m>,
    pub plan: &'a RegisterAttention,
    pub memory: &'a Memory<'ctx>,
    pub result: &'a Source<'ctx>,
    /// Coordinates in the batch of the scores.
    pub batch: Vec<AffineExpr>,
    /// Counters of the outer loops over rows.
    outer: Vec<AffineExpr>,
    /// Number of the first tile.
    first_tile: AffineExpr,
}

/// Both GEMMs of a block of keys.
pub(super) struct Block<'a, 'ctx, 'm> {
    pub tiles: &'a BlockTiles,
    pub scores: BatchMatmul<'a, 'ctx, 'm>,
    pub results: BatchMatmul<'a, 'ctx, 'm>,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the function's body and returns the number of work items.
    pub(crate) fn emit_register_attention<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        plan: &RegisterAttention,
    ) -> Result<u64> {
        let attention = self.required_attention()?;
        let mut fused = self.bind(emitter, frame.pointers)?;
        let memory = Memory::new(&fused, &attention, plan)?;
        let result = self.target(&fused, 0);
        let loops = plan.items(&attention.scores.batch);
        let items = loops.iter().product();
        fused.for_work_items(frame.work_items, items, &mut |s, item| {
            let mut batch = coordinates(s, &AffineExpr::symbol(item), &loops)?;
            let first_tile = batch.pop().unwrap_or_default().scaled(plan.run as i64);
            let outer = batch.split_off(attention.scores.batch.len());
            let (attention, memory, result) = (&attention, &memory, &result);
            QueryRun { kernel: self, attention, plan, memory, result, batch, outer, first_tile }.emit(s)
        })?;
        Ok(items)
    }
}

impl<'a, 'e, 'ctx, 'm> QueryRun<'a, 'ctx, 'm> {
    fn emit(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()> {
        let plan = self.plan;
        let [all, _] = plan.full.scores.tiles();
        let tiles = group(s, &self.first_tile, plan.run, all)?;
        self.clear(s)?;
        let blocks = s.full_range(plan.blocks, 1);
        s.turns(blocks, &mut |s, number| {
            let block = self.block(&plan.full, number.clone().scaled(plan.full.keys as i64));
            block.pack(s)?;
            s.turns(tiles, &mut |s, tile| self.tile(s, &block, tile))
        })?;
        if let Some(rest) = &plan.rest {
            let block = self.block(rest, AffineExpr::constant((plan.blocks * plan.full.keys) as i64));
            block.pack(s)?;
            s.turns(tiles, &mut |s, tile| self.tile(s, &block, tile))?;
        }
        s.turns(tiles, &mut |s, tile| self.finish(s, tile))
    }

    /// Returns the GEMMs of a block of keys from `first` on.
    fn block(&self, tiles: &'a BlockTiles, first: AffineExpr) -> Block<'a, 'ctx, 'm> {
        let zero = AffineExpr::default;
        let (kernel, result) = (self.kernel, self.result);
        let scores = BatchMatmul {
            kernel,
            matmul: &self.attention.scores,
            tiles: &tiles.scores,
            panels: &self.memory.scores,
            result,
            batch: self.batch.clone(),
            outer: [self.outer.clone(), Vec::new()],
            first_column: first.clone(),
            part: zero(),
            first_k: zero(),
        };
        let results = BatchMatmul {
            kernel,
            matmul: &self.attention.result,
            tiles: &tiles.results,
            panels: &self.memory.results,
            result,
            batch: self.result_batch(),
            outer: [self.outer.clone(), Vec::new()],
            first_column: zero(),
            part: zero(),
            first_k: first,
        };
        Block { tiles, scores, results }
    }

    /// Returns the first query of a tile of the run.
    pub fn first_query(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, tile: &AffineExpr) -> Result<AffineExpr> {
        let height = self.plan.full.scores.rows;
        s.first_of(&self.first_tile.clone().plus(tile), height, self.plan.rows.extent)
    }

    /// Returns the coordinates of a query among the rows of the scores.
    pub fn coordinates(&self, query: &AffineExpr) -> Vec<AffineExpr> {
        self.plan.rows.coordinates(&self.outer, query)
    }

    /// Returns the coordinates in the batch of the results.
    fn result_batch(&self) -> Vec<AffineExpr> {
        let AttentionKernel { scores, result, .. } = self.attention;
        placed_in(&result.batch, large(&scores.batch, &self.batch))
    }

    /// Returns the index of the result at a query and an element of its value.
    pub fn result_index(&self, query: &AffineExpr, element: &AffineExpr) -> Index {
        let AttentionKernel { scores, result, parts } = self.attention;
        let [queries, _, values] = self.attention.sides();
        let own: Vec<_> = large(&scores.free[queries as usize], &self.coordinates(query)).collect();
        let rows = placed_in(&result.free[values.other() as usize], parts.rows.iter().map(|&d| own[d].clone()));
        let elements = [element.clone()];
        match values {
            MatmulSide::Right => result.result_index(&self.result_batch(), &rows, &elements),
            MatmulSide::Left => result.result_index(&self.result_batch(), &elements, &rows),
        }
    }
}

impl<'e, 'ctx, 'm> Block<'_, 'ctx, 'm> {
    /// Packs the keys and values of the block.
    fn pack(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()> {
        for gemm in [&self.scores, &self.results] {
            panels(s, gemm, &mut |s, panel, column| gemm.pack_columns(s, panel, column))?;
        }
        Ok(())
    }
}

/// Runs `body` for each panel of columns of a GEMM, with the panel's number and its first column.
pub(super) fn panels<'e, 'ctx, 'm>(
    s: &mut FusedEmitter<'e, 'ctx, 'm>,
    gemm: &BatchMatmul<'_, 'ctx, 'm>,
    body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &AffineExpr, &AffineExpr) -> Result<()>,
) -> Result<()> {
    let range = s.full_range(gemm.tiles.block, 1);
    s.turns(range, &mut |s, panel| {
        let column = s.first_of(panel, gemm.tiles.columns(), gemm.tiles.axes[1].extent)?;
        body(s, panel, &column)
    })
}

/// Returns the coordinates of the dimensions with more than one element.
fn large<'a>(extents: &'a [u64], at: &'a [AffineExpr]) -> impl Iterator<Item = AffineExpr> + 'a {
    extents.iter().zip(at).filter(|(extent, _)| **extent != 1).map(|(_, at)| at.clone())
}

/// Returns coordinates for all dimensions, from those of the dimensions with more than one element.
fn placed_in(extents: &[u64], mut large: impl Iterator<Item = AffineExpr>) -> Vec<AffineExpr> {
    let place = |&extent: &u64| if extent == 1 { None } else { large.next() }.unwrap_or_default();
    extents.iter().map(place).collect()
}
