//! Main loop over keys: scores of a tile, the online softmax, and the products with the values.

use xla_hlo::Result;

use super::operand::{Fragments, Operand};
use super::plan::AttentionTiling;
use super::products;
use super::rows::{State, ThreadRows};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::function::coordinates;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::mma::ROWS;
use crate::simt::{Register, WARP};

/// Tile of queries, and a thread's position in it.
struct Block<'e, 'ctx, 'a, 'm> {
    kernel: &'a AttentionKernel<'m>,
    tiling: AttentionTiling,
    rows: ThreadRows<'a, 'm>,
    queries: Operand<'e, 'ctx>,
    keys: Operand<'e, 'ctx>,
    values: Operand<'e, 'ctx>,
    of_queries: Fragments<'e, 'ctx>,
    of_keys: Fragments<'e, 'ctx>,
    of_values: Vec<Fragments<'e, 'ctx>>,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of an attention kernel on tensor cores; a block computes a tile of queries.
    pub(crate) fn emit_attention<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        tiling: AttentionTiling,
    ) -> Result<Launch> {
        let kernel = self.required_attention()?;
        emitter.allow_all_registers();
        let tiles = kernel.queries().div_ceil(AttentionTiling::ROWS);
        let work_items = kernel.scores.batches() * tiles;
        let mut s = self.bind(emitter, frame.pointers)?;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let item = s.uniform_symbol(block?.zext(64), Some(work_items));
        // Adjacent blocks share keys, so that these stay in the cache.
        let at = counters(&mut s, &AffineExpr::symbol(item), &[kernel.scores.batches(), tiles])?;
        let batch = coordinates(&mut s, &at[0], &kernel.scores.batch)?;
        let thread = s.uniform_symbol(thread?.zext(64), Some(AttentionTiling::THREADS));
        let block = Block::new(&mut s, (&kernel, tiling), batch, &at[1], &AffineExpr::symbol(thread))?;
        let state = block.state(&mut s)?;
        let sink = Sink::new(&kernel.result, &block.rows.batch, Cut::whole(kernel.result.k()), (&at[0], None))?;
        for (at, value) in block.rows.results(&mut s, state)? {
            self.store_vector(&mut s, &sink, [&at[0], &at[1]], value)?;
        }
        Ok(Launch { work_items, block: Some(AttentionTiling::THREADS as u32) })
    }
}

impl<'e, 'ctx, 'a, 'm> Block<'e, 'ctx, 'a, 'm> {
    fn new(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (kernel, tiling): (&'a AttentionKernel<'m>, AttentionTiling),
        batch: Vec<AffineExpr>,
        tile: &AffineExpr,
        thread: &AffineExpr,
    ) -> Result<Self> {
        let [query, key, value] = kernel.sides();
        let [shape, key_shape, value_shape] = tiling.shapes();
        let (warp, lane) = s.divide(thread, i64::from(WARP))?;
        let first = tile.clone().scaled(AttentionTiling::ROWS as i64);
        let zero = AffineExpr::default();
        let queries = Operand::new(s, (&kernel.scores, query), shape, (&batch, &first), thread)?;
        let keys = Operand::new(s, (&kernel.scores, key), key_shape, (&batch, &zero), thread)?;
        let values = Operand::new(s, (&kernel.result, value), value_shape, (&batch, &zero), thread)?;
        let of_warp = warp.scaled(ROWS as i64);
        let rows = ThreadRows::new(s, (kernel, batch), &first.plus(&of_warp), &lane)?;
        let number = s.number_of(&lane)?;
        let lane = s.lanes_of(number);
        let number = s.number_of(&of_warp)?;
        let first_row = s.lanes_of(number);
        let (of_queries, of_keys) = (queries.left(first_row, lane), keys.right(lane));
        let of_values = products::of_values(tiling.unit, &values, lane);
        Ok(Block { kernel, tiling, rows, queries, keys, values, of_queries, of_keys, of_values })
    }

    /// Emits the loop over keys, and returns the thread's final state.
    fn state(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<State<'e, 'ctx>> {
        let start = State::new(s, self.tiling.heads[1]);
        self.queries.copy(s, s.number(0))?;
        self.keys.copy(s, s.number(0))?;
        s.emitter.end_copy_group()?;
        let tiles = self.kernel.keys().div_ceil(self.tiling.keys);
        let range = s.full_range(tiles, 1);
        let raws = s.for_each(range, start.raws(), &mut |s, tile, carried| {
            s.emitter.keep_loop()?;
            let state = State::from_raws(s.emitter, carried);
            self.add_tile(s, &AffineExpr::symbol(tile), state).map(|state| state.raws())
        })?;
        // The last iteration has started copies that only write zeros.
        s.emitter.wait_for_copies(0)?;
        Ok(State::from_raws(s.emitter, &raws))
    }

    /// Processes a tile of keys, whose copies are in flight, and starts the copies of the next one.
    fn add_tile(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &AffineExpr,
        state: State<'e, 'ctx>,
    ) -> Result<State<'e, 'ctx>> {
        let number = s.number_of(tile)?;
        let number = s.lanes_of(number);
        self.values.copy(s, number)?;
        s.emitter.end_copy_group()?;
        s.emitter.wait_for_copies(1)?;
        s.emitter.barrier()?;
        let AttentionTiling { unit, keys, heads } = self.tiling;
        let sides = [(&self.queries, &self.of_queries), (&self.keys, &self.of_keys)];
        let scores = products::scores(s, unit, sides, (keys, heads[0]))?;
        s.emitter.barrier()?;
        self.keys.copy(s, number + 1)?;
        s.emitter.end_copy_group()?;
        let (mut state, [upper, lower]) = self.rows.with(s, (tile, keys), scores, state)?;
        s.emitter.wait_for_copies(1)?;
        s.emitter.barrier()?;
        let values = (&self.values, &self.of_values[..]);
        products::multiply(s, (unit, keys), [&upper, &lower], values, &mut state.results)?;
        s.emitter.barrier()?;
        Ok(state)
    }
}
