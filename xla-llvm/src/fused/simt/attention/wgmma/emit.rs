//! Warp-specialized main loop over keys: one TMA producer thread and `wgmma` consumer groups.

use xla_hlo::Result;

use super::plan::WgmmaAttention;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::function::coordinates;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::attention::products::{self, Sums};
use crate::fused::simt::attention::rows::{State, ThreadRows};
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::fused::simt::pipeline::{Iteration, Pipeline, Stage, Stages};
use crate::fused::simt::tma_operand::{TmaOperand, short};
use crate::lanes::Lanes;
use crate::mma::{GROUP_ROWS, LeftFactor, ROWS, group_block};
use crate::simt::{Register, WARP};

/// Tile of queries.
struct GroupBlock<'e, 'ctx, 'a, 'm> {
    plan: WgmmaAttention,
    kernel: &'a AttentionKernel<'m>,
    batch: Vec<AffineExpr>,
    /// Queries, keys and values.
    operands: [TmaOperand<'e, 'ctx>; 3],
    /// First query of the tile.
    first: AffineExpr,
    /// Shared memory has the queries, then stages of keys and values.
    pipeline: Pipeline<'e, 'ctx>,
    thread_expr: AffineExpr,
}

/// The mbarriers of a stage's keys and of its values.
const KEYS: usize = 0;
const VALUES: usize = 1;

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of a warp-specialized attention kernel; a block computes a tile of queries.
    pub(crate) fn emit_attention_of_groups<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        plan: WgmmaAttention,
    ) -> Result<Launch> {
        let kernel = self.required_attention()?;
        emitter.allow_all_registers();
        let tiles = kernel.queries().div_ceil(plan.rows());
        let work_items = kernel.scores.batches() * tiles;
        let mut s = self.bind(emitter, frame.pointers)?;
        let item = s.uniform_symbol(emitter.register(Register::Block)?.zext(64), Some(work_items));
        // Adjacent blocks share keys, so that these stay in the cache.
        let at = counters(&mut s, &AffineExpr::symbol(item), &[kernel.scores.batches(), tiles])?;
        let batch = coordinates(&mut s, &at[0], &kernel.scores.batch)?;
        let block = GroupBlock::new(&mut s, (&kernel, plan), batch, &at[1])?;
        block.pipeline.emit(
            &mut s,
            |s| block.fill(s),
            |s| {
                let rows = block.rows(s)?;
                let state = block.state(s, &rows)?;
                let sink = Sink::new(&kernel.result, &rows.batch, Cut::whole(kernel.result.k()), (&at[0], None))?;
                for (at, value) in rows.results(s, state)? {
                    self.store_vector(s, &sink, [&at[0], &at[1]], value)?;
                }
                Ok(())
            },
        )?;
        Ok(Launch { work_items, block: Some(group_block(plan.groups) as u32) })
    }
}

impl<'e, 'ctx, 'a, 'm> GroupBlock<'e, 'ctx, 'a, 'm> {
    fn new(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (kernel, plan): (&'a AttentionKernel<'m>, WgmmaAttention),
        batch: Vec<AffineExpr>,
        tile: &AffineExpr,
    ) -> Result<Self> {
        let [query, key, value] = kernel.sides();
        let [queries, keys, values] = plan.tiles;
        let operands = [
            TmaOperand::new(s, (&kernel.scores, query), queries, &batch)?,
            TmaOperand::new(s, (&kernel.scores, key), keys, &batch)?,
            TmaOperand::new(s, (&kernel.result, value), values, &batch)?,
        ];
        let stages = Stages { count: WgmmaAttention::STAGES, full: 2, once: true, bytes: plan.all_bytes() };
        let pipeline = Pipeline::new(s.emitter, plan.groups, stages)?;
        let thread = s.uniform_symbol(pipeline.thread.zext(64), Some(group_block(plan.groups)));
        let first = tile.clone().scaled(plan.rows() as i64);
        let thread_expr = AffineExpr::symbol(thread);
        Ok(GroupBlock { plan, kernel, batch, operands, first, pipeline, thread_expr })
    }

    /// Returns the number of tiles of keys.
    fn tiles(&self) -> u64 {
        self.kernel.keys().div_ceil(self.plan.keys)
    }

    /// Returns the byte offset of a stage's keys; its values follow.
    fn place(&self, stage: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        stage * self.plan.stage_bytes() as i64 + self.plan.tiles[0].all_bytes() as i64
    }

    /// Emits the loads of the queries, and the producer loop over keys and values.
    fn fill(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()> {
        let [queries, keys, values] = &self.operands;
        let (first, zero) = (short(s, &self.first)?, self.pipeline.thread.int(0));
        self.pipeline.load_once(s, &[(queries, s.number(0), [first, zero])])?;
        let range = s.full_range(self.tiles(), 1);
        self.pipeline.produce(s, range, |s, tile, stage| {
            let key = (tile.number * self.plan.keys as i64).trunc(32);
            let to = self.place(stage.number);
            self.pipeline.load(s, (KEYS, stage), &[(keys, to, [key, zero])])?;
            let to = to + keys.tile.all_bytes() as i64;
            self.pipeline.load(s, (VALUES, stage), &[(values, to, [zero, key])])
        })
    }

    /// Returns the thread's rows. Consecutive warps, also across groups, have consecutive rows.
    fn rows(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<ThreadRows<'a, 'm>> {
        let (warp, lane) = s.divide(&self.thread_expr, i64::from(WARP))?;
        let first = self.first.clone().plus(&warp.scaled(ROWS as i64));
        ThreadRows::new(s, (self.kernel, self.batch.clone()), &first, &lane)
    }

    /// Emits the consumer loop over keys, and returns the thread's final state.
    fn state(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, rows: &ThreadRows<'_, 'm>) -> Result<State<'e, 'ctx>> {
        self.pipeline.wait_once(s)?;
        let first = State::new(s, self.plan.heads[1]).raws();
        let range = s.full_range(self.tiles(), 1);
        let raws = self.pipeline.for_each_stage(s, range, first, &mut |s, tile, stage, state| {
            let state = State::from_raws(s.emitter, state);
            Ok(self.add_tile(s, rows, (tile, stage), state)?.raws())
        })?;
        let mut state = State::from_raws(s.emitter, &raws);
        self.wait(s, &mut [], &mut state.results)?;
        Ok(state)
    }

    /// Processes a tile of keys. The products with its values are in flight when it returns.
    fn add_tile(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        rows: &ThreadRows<'_, 'm>,
        (tile, stage): (Iteration<'e, 'ctx>, Stage<'e, 'ctx>),
        mut state: State<'e, 'ctx>,
    ) -> Result<State<'e, 'ctx>> {
        let [_, keys, values] = self.plan.tiles;
        self.pipeline.wait(s, KEYS, stage)?;
        let mut scores = self.scores(s, stage.number)?;
        self.wait(s, &mut scores, &mut state.results)?;
        // The products with the values of the previous iteration are complete too, so that its stage can be released.
        self.pipeline.release_previous(s, stage, tile.number.ne(0))?;
        let tile = AffineExpr::symbol(tile.symbol);
        let (mut state, [upper, lower]) = rows.with(s, (&tile, self.plan.keys), scores, state)?;
        self.pipeline.wait(s, VALUES, stage)?;
        let factor = values.factor(self.pipeline.array, self.place(stage.number) + keys.all_bytes() as i64);
        let mut results: Vec<_> = state.results.iter().flatten().copied().collect();
        let depth = self.plan.unit.depth();
        let lefts = (0..self.plan.keys / depth)
            .map(|step| products::left_fragments(s, self.plan.unit, [&upper, &lower], step))
            .collect::<Result<Vec<_>>>()?;
        s.emitter.begin_group_products()?;
        for (step, left) in (0..).zip(lefts) {
            let left = LeftFactor::Registers(left);
            s.emitter.multiply_by_group(self.plan.unit, (&left, &factor), step, &mut results)?;
        }
        s.emitter.end_group_products()?;
        fill_sums(&mut state.results, &results);
        Ok(state)
    }

    /// Starts the products of the queries and a stage's keys.
    fn scores(&self, s: &FusedEmitter<'e, 'ctx, 'm>, stage: Lanes<'e, 'ctx>) -> Result<Vec<Sums<'e, 'ctx>>> {
        let [queries, keys, _] = self.plan.tiles;
        let rows = self.pipeline.group() * queries.form.of_free(GROUP_ROWS) as i64;
        let left = LeftFactor::Shared(queries.factor(self.pipeline.array, rows));
        let right = keys.factor(self.pipeline.array, self.place(stage));
        let mut scores = products::zeros(s, self.plan.keys);
        let mut sums: Vec<_> = scores.iter().flatten().copied().collect();
        s.emitter.begin_group_products()?;
        for step in 0..self.plan.heads[0] / self.plan.unit.depth() {
            s.emitter.multiply_by_group(self.plan.unit, (&left, &right), step, &mut sums)?;
        }
        s.emitter.end_group_products()?;
        fill_sums(&mut scores, &sums);
        Ok(scores)
    }

    /// Waits for all products in flight: scores, and products with values.
    fn wait(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        scores: &mut [Sums<'e, 'ctx>],
        results: &mut [Sums<'e, 'ctx>],
    ) -> Result<()> {
        let mut all: Vec<_> = scores.iter().chain(results.iter()).flatten().copied().collect();
        s.emitter.wait_for_group_products(0, &mut all)?;
        let (of_scores, of_results) = all.split_at(4 * scores.len());
        fill_sums(scores, of_scores);
        fill_sums(results, of_results);
        Ok(())
    }
}

/// Copies a flat list of accumulators back into the accumulators of each matrix.
fn fill_sums<'e, 'ctx>(sums: &mut [Sums<'e, 'ctx>], all: &[Lanes<'e, 'ctx>]) {
    for (sums, all) in sums.iter_mut().zip(all.chunks_exact(4)) {
        sums.copy_from_slice(all);
    }
}
