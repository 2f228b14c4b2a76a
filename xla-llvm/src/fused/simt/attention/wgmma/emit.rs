//! Warp-specialized main loop over keys: one TMA producer thread and `wgmma` consumer groups.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{Error, Result};

use super::plan::WgmmaAttention;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::attention::function::coordinates;
use crate::fused::simt::attention::plan::AttentionKernel;
use crate::fused::simt::attention::products::{self, Sums};
use crate::fused::simt::attention::rows::{State, ThreadRows};
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::fused::simt::pipeline_stage::PipelineStage;
use crate::fused::simt::tma_operand::{TmaOperand, short};
use crate::fused::value::SymbolValue;
use crate::lanes::{Lanes, Scalar};
use crate::mma::{GROUP, GROUP_ROWS, LeftFactor, ROWS, group_block};
use crate::simt::{Arrival, Mbarriers, Register, WARP};

/// Tile of queries.
struct GroupBlock<'e, 'ctx, 'a, 'm> {
    plan: WgmmaAttention,
    kernel: &'a AttentionKernel<'m>,
    batch: Vec<AffineExpr>,
    /// Queries, keys and values.
    operands: [TmaOperand<'e, 'ctx>; 3],
    /// First query of the tile.
    first: AffineExpr,
    /// Shared memory: queries, then stages of keys and values.
    array: PointerValue<'ctx>,
    barriers: Barriers<'ctx>,
    /// Index of the thread in the block.
    thread: Lanes<'e, 'ctx>,
    thread_expr: AffineExpr,
}

/// mbarriers: `queries` completes when the queries are loaded; `keys` and `values` complete per stage when its tile is
/// loaded, and `emptied` when the consumers have released the stage.
struct Barriers<'ctx> {
    queries: Mbarriers<'ctx>,
    keys: Mbarriers<'ctx>,
    values: Mbarriers<'ctx>,
    emptied: Mbarriers<'ctx>,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of a warp-specialized attention kernel; a block computes a tile of queries.
    pub(crate) fn emit_attention_of_groups<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        let missing = || Error::internal("kernel has no attention, which its strategy requires");
        let (kernel, plan) = self.attention_of_groups(emitter.target()).ok_or_else(missing)?;
        emitter.allow_all_registers();
        let tiles = kernel.queries().div_ceil(plan.rows());
        let work_items = kernel.scores.batches() * tiles;
        let mut s = self.bind(emitter, frame.pointers)?;
        let item = s.uniform_symbol(emitter.register(Register::Block)?.zext(64), Some(work_items));
        // Adjacent blocks share keys, so that these stay in the cache.
        let at = counters(&mut s, &AffineExpr::symbol(item), &[kernel.scores.batches(), tiles])?;
        let batch = coordinates(&mut s, &at[0], &kernel.scores.batch)?;
        let block = GroupBlock::new(&mut s, (&kernel, plan), batch, &at[1])?;
        block.begin(&mut s)?;
        s.when(block.thread.uge(plan.threads() as i64), &[], |s| {
            s.emitter.exchange_registers(plan.groups, false)?;
            s.when(block.thread.eq(plan.threads() as i64), &[], |s| block.fill(s))
        })?;
        s.when(block.thread.ult(plan.threads() as i64), &[], |s| {
            s.emitter.exchange_registers(plan.groups, true)?;
            s.item_level = s.depth();
            let rows = block.rows(s)?;
            let state = block.state(s, &rows)?;
            let sink = Sink::new(&kernel.result, &rows.batch, Cut::whole(kernel.result.k()), (&at[0], None))?;
            for (at, value) in rows.results(s, state)? {
                self.store_vector(s, &sink, [&at[0], &at[1]], value)?;
            }
            Ok(Vec::new())
        })?;
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
        let array = s.emitter.dynamic_shared_memory(Scalar::Int(8), plan.all_bytes())?;
        let stages = WgmmaAttention::STAGES;
        let barriers = Barriers {
            queries: s.emitter.mbarriers(1)?,
            keys: s.emitter.mbarriers(stages)?,
            values: s.emitter.mbarriers(stages)?,
            emptied: s.emitter.mbarriers(stages)?,
        };
        let thread = s.emitter.register(Register::Thread)?;
        let thread_expr = AffineExpr::symbol(s.uniform_symbol(thread.zext(64), Some(group_block(plan.groups))));
        let first = tile.clone().scaled(plan.rows() as i64);
        Ok(GroupBlock { plan, kernel, batch, operands, first, array, barriers, thread, thread_expr })
    }

    /// Initialises all mbarriers.
    fn begin(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()> {
        s.when(self.thread.eq(0), &[], |s| {
            s.emitter.init_mbarrier(self.barriers.queries, s.number(0), 1)?;
            for stage in 0..WgmmaAttention::STAGES as i64 {
                s.emitter.init_mbarrier(self.barriers.keys, s.number(stage), 1)?;
                s.emitter.init_mbarrier(self.barriers.values, s.number(stage), 1)?;
                s.emitter.init_mbarrier(self.barriers.emptied, s.number(stage), self.plan.threads() as u32 / WARP)?;
            }
            s.emitter.fence_mbarrier_init()?;
            Ok(Vec::new())
        })?;
        s.emitter.barrier()
    }

    /// Returns the number of tiles of keys.
    fn tiles(&self) -> u64 {
        self.kernel.keys().div_ceil(self.plan.keys)
    }

    /// Returns the byte offset of a stage's keys; its values follow.
    fn place(&self, stage: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        stage * self.plan.stage_bytes() as i64 + self.plan.tiles[0].all_bytes() as i64
    }

    /// Emits the producer loop of one thread, which loads all tiles by TMA.
    fn fill(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let [queries, keys, values] = &self.operands;
        let (first, zero) = (short(s, &self.first)?, self.thread.int(0));
        let fill =
            |s: &FusedEmitter<'e, 'ctx, 'm>, operand: &TmaOperand<'e, 'ctx>, to, at, arrival: Arrival<'e, 'ctx>| {
                s.emitter.arrive_expecting(arrival.barriers, arrival.number, operand.tile.all_bytes())?;
                operand.copy(s, (self.array, to), at, arrival)
            };
        let arrival = Arrival { barriers: self.barriers.queries, number: s.number(0) };
        fill(s, queries, s.number(0), [first, zero], arrival)?;
        let range = s.full_range(self.tiles(), 1);
        s.for_each(range, PipelineStage::first(s.emitter).raws().to_vec(), &mut |s, tile, carried| {
            s.emitter.keep_loop()?;
            let (stage, _) = PipelineStage::split_off(s.emitter, carried);
            let SymbolValue::Uniform(tile) = s.symbol_value(tile) else {
                return Err(Error::internal("the index of a tile of keys is a vector"));
            };
            // The first wait for each stage returns at once: the stage is empty.
            s.emitter.wait_mbarrier(self.barriers.emptied, stage.number, stage.parity ^ 1)?;
            let key = (tile * self.plan.keys as i64).trunc(32);
            let to = self.place(stage.number);
            let arrival = Arrival { barriers: self.barriers.keys, number: stage.number };
            fill(s, keys, to, [key, zero], arrival)?;
            let arrival = Arrival { barriers: self.barriers.values, number: stage.number };
            fill(s, values, to + keys.tile.all_bytes() as i64, [zero, key], arrival)?;
            Ok(stage.next(WgmmaAttention::STAGES).raws().to_vec())
        })?;
        Ok(Vec::new())
    }

    /// Returns the thread's rows. Consecutive warps, also across groups, have consecutive rows.
    fn rows(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<ThreadRows<'a, 'm>> {
        let (warp, lane) = s.divide(&self.thread_expr, i64::from(WARP))?;
        let first = self.first.clone().plus(&warp.scaled(ROWS as i64));
        ThreadRows::new(s, (self.kernel, self.batch.clone()), &first, &lane)
    }

    /// Emits the consumer loop over keys, and returns the thread's final state.
    fn state(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, rows: &ThreadRows<'_, 'm>) -> Result<State<'e, 'ctx>> {
        s.emitter.wait_mbarrier(self.barriers.queries, s.number(0), self.thread.int(0))?;
        let mut carried = PipelineStage::first(s.emitter).raws().to_vec();
        carried.extend(State::new(s, self.plan.heads[1]).raws());
        let range = s.full_range(self.tiles(), 1);
        let raws = s.for_each(range, carried, &mut |s, tile, carried| {
            s.emitter.keep_loop()?;
            let (stage, state) = PipelineStage::split_off(s.emitter, carried);
            let state = State::from_raws(s.emitter, state);
            let state = self.turn(s, rows, (&AffineExpr::symbol(tile), stage), state)?;
            let mut carried = stage.next(WgmmaAttention::STAGES).raws().to_vec();
            carried.extend(state.raws());
            Ok(carried)
        })?;
        let mut state = State::from_raws(s.emitter, &raws[PipelineStage::RAWS..]);
        self.wait(s, &mut [], &mut state.results)?;
        Ok(state)
    }

    /// Processes a tile of keys. The products with its values are in flight when it returns.
    fn turn(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        rows: &ThreadRows<'_, 'm>,
        (tile, stage): (&AffineExpr, PipelineStage<'e, 'ctx>),
        mut state: State<'e, 'ctx>,
    ) -> Result<State<'e, 'ctx>> {
        let [_, keys, values] = self.plan.tiles;
        let number = s.number_of(tile)?;
        let is_first = s.lanes_of(number).eq(0);
        s.emitter.wait_mbarrier(self.barriers.keys, stage.number, stage.parity)?;
        let mut scores = self.scores(s, stage.number)?;
        self.wait(s, &mut scores, &mut state.results)?;
        // The products with the values of the previous iteration are complete too, so that its stage can be released.
        let is_told = (self.thread & i64::from(WARP - 1)).eq(0) & !is_first;
        s.when(is_told, &[], |s| {
            s.emitter.arrive(self.barriers.emptied, stage.before(WgmmaAttention::STAGES))?;
            Ok(Vec::new())
        })?;
        let (mut state, [upper, lower]) = rows.with(s, (tile, self.plan.keys), scores, state)?;
        s.emitter.wait_mbarrier(self.barriers.values, stage.number, stage.parity)?;
        let factor = values.factor(self.array, self.place(stage.number) + keys.all_bytes() as i64);
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
        let group = self.thread.lshr(i64::from(GROUP.ilog2())).zext(64);
        let left = LeftFactor::Shared(queries.factor(self.array, group * queries.form.of_free(GROUP_ROWS) as i64));
        let right = keys.factor(self.array, self.place(stage));
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
