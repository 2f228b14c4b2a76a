//! The loop over keys: scores of a tile, their softmax so far, and products with the values.

use xla_hlo::{ElementType, Error, Result, Scalar as Element};

use super::function::{Columns, coordinates};
use super::online::{Row, of_row};
use super::operand::{Fragments, Operand, clamped};
use super::plan::{AttentionKernel, AttentionTiling};
use super::products::{self, Placed, Sums};
use crate::elemental;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::lanes::Lanes;
use crate::mma::ROWS;
use crate::simt::{Register, WARP};

/// A tile of queries, and a thread's place in it.
struct Block<'e, 'ctx, 'a, 'm> {
    kernel: &'a AttentionKernel<'m>,
    tiling: AttentionTiling,
    batch: Vec<AffineExpr>,
    /// The thread's two rows.
    rows: [AffineExpr; 2],
    /// The thread's number among the four that have the same rows.
    member: AffineExpr,
    queries: Operand<'e, 'ctx>,
    keys: Operand<'e, 'ctx>,
    values: Operand<'e, 'ctx>,
    of_queries: Fragments<'e, 'ctx>,
    of_keys: Fragments<'e, 'ctx>,
    of_values: Vec<Fragments<'e, 'ctx>>,
}

/// A thread's part of its rows.
struct State<'e, 'ctx> {
    rows: [Row<'e, 'ctx>; 2],
    /// Sums of products of exponentials and values.
    results: Vec<Sums<'e, 'ctx>>,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Writes the function's body.
    pub(crate) fn emit_attention<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        tiling: AttentionTiling,
    ) -> Result<Launch> {
        let missing = || Error::internal("a kernel without the attention that it was chosen for");
        let (kernel, _) = self.attention(emitter.target()).ok_or_else(missing)?;
        emitter.allow_all_registers();
        let tiles = kernel.queries().div_ceil(AttentionTiling::ROWS);
        let work_items = kernel.scores.batches() * tiles;
        let mut s = self.bind(emitter, frame.pointers)?;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let item = s.uniform_symbol(block?.zext(64), Some(work_items));
        // Neighbouring blocks have the same keys, so that these are in the cache.
        let at = counters(&mut s, &AffineExpr::symbol(item), &[kernel.scores.batches(), tiles])?;
        let batch = coordinates(&mut s, &at[0], &kernel.scores.batch)?;
        let thread = s.uniform_symbol(thread?.zext(64), Some(AttentionTiling::THREADS));
        let block = Block::new(&mut s, (&kernel, tiling), batch, &at[1], &AffineExpr::symbol(thread))?;
        let state = block.state(&mut s)?;
        let sink = Sink::new(&kernel.result, &block.batch, Cut::whole(kernel.result.k()), (&at[0], None))?;
        for (at, value) in block.results(&mut s, state)? {
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
        let (group, member) = s.divide(&lane, 4)?;
        let first = tile.clone().scaled(AttentionTiling::ROWS as i64);
        let zero = AffineExpr::default();
        let queries = Operand::new(s, (&kernel.scores, query), shape, (&batch, &first), thread)?;
        let keys = Operand::new(s, (&kernel.scores, key), key_shape, (&batch, &zero), thread)?;
        let values = Operand::new(s, (&kernel.result, value), value_shape, (&batch, &zero), thread)?;
        let of_warp = warp.scaled(ROWS as i64);
        let number = s.number_of(&lane)?;
        let lane = s.lanes_of(number);
        let number = s.number_of(&of_warp)?;
        let first_row = s.lanes_of(number);
        let rows = [0, ROWS / 2].map(|half| first.clone().plus(&of_warp).plus(&group).shifted(half as i64));
        let (of_queries, of_keys) = (queries.left(first_row, lane), keys.right(lane));
        let of_values = products::of_values(tiling.unit, &values, lane);
        Ok(Block { kernel, tiling, batch, rows, member, queries, keys, values, of_queries, of_keys, of_values })
    }

    /// The thread's part in the end.
    fn state(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<State<'e, 'ctx>> {
        let zero = elemental::constant(s.emitter, ElementType::F32, Element::Float(0.0)).lanes();
        let row = Row { largest: zero.constant(f64::NEG_INFINITY), sum: zero };
        let start = State { rows: [row; 2], results: products::zeros(s, self.tiling.heads[1]) };
        self.queries.copy(s, s.number(0))?;
        self.keys.copy(s, s.number(0))?;
        s.emitter.end_copy_group()?;
        let tiles = self.kernel.keys().div_ceil(self.tiling.keys);
        let range = s.full_range(tiles, 1);
        let raws = s.for_each(range, start.raws(), &mut |s, tile, carried| {
            s.emitter.keep_loop()?;
            let state = State::from_raws(s.emitter, carried);
            self.turn(s, &AffineExpr::symbol(tile), state).map(|state| state.raws())
        })?;
        // The copies that the last turn has begun are of nothing.
        s.emitter.wait_for_copies(0)?;
        Ok(State::from_raws(s.emitter, &raws))
    }

    /// Another tile of keys, whose copies are under way; begins those of the next.
    fn turn(
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
        let scores = [products::scores(s, unit, sides, (keys, heads[0]))?];
        s.emitter.barrier()?;
        self.keys.copy(s, number + 1)?;
        s.emitter.end_copy_group()?;
        let State { rows, mut results } = state;
        let columns = Columns::of_tile(s, tile, &self.member, [keys, self.kernel.keys()])?;
        let function = self.kernel.logits();
        let [upper, lower] = [0, 1].map(|half| {
            let row = clamped(s, self.rows[half].clone(), self.kernel.queries() - 1)?;
            let place = (&self.batch[..], &row);
            let logits = function.values(s, place, &columns, (half, &scores), f64::NEG_INFINITY)?;
            let largest = logits.iter().copied().reduce(Lanes::maximum).unwrap_or(rows[half].largest);
            Ok::<_, Error>(rows[half].with(of_row(s.emitter, largest, Lanes::maximum)?, &logits))
        });
        let (upper, lower) = (upper?, lower?);
        for [a, b, c, d] in &mut results {
            (*a, *b, *c, *d) = (*a * upper.scale, *b * upper.scale, *c * lower.scale, *d * lower.scale);
        }
        s.emitter.wait_for_copies(1)?;
        s.emitter.barrier()?;
        let exponentials = [&upper.exponentials[..], &lower.exponentials];
        products::multiply(s, (unit, keys), exponentials, (&self.values, &self.of_values), &mut results)?;
        s.emitter.barrier()?;
        Ok(State { rows: [upper.row, lower.row], results })
    }

    /// The thread's results as neighbours of a row, and where they are in the second dot's result.
    fn results(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, state: State<'e, 'ctx>) -> Result<Vec<Placed<'e, 'ctx>>> {
        let factor = |row: Row<'e, 'ctx>| {
            let sum = of_row(s.emitter, row.sum, |a, b| a + b)?;
            Ok::<_, Error>(sum.constant(1.0) / sum)
        };
        let [upper, lower] = state.rows.map(factor);
        let factors = [upper?, lower?];
        let [upper, lower] = self.rows.each_ref().map(|row| self.row_of_result(s, row));
        let rows = [upper?, lower?];
        let scaled =
            |[a, b, c, d]: &Sums<'e, 'ctx>| [*a * factors[0], *b * factors[0], *c * factors[1], *d * factors[1]];
        let results: Vec<_> = state.results.iter().map(scaled).collect();
        Ok(products::placed(&results, &rows, &self.member, self.kernel.sides()[2]))
    }
}

impl<'e, 'ctx, 'm> Block<'e, 'ctx, '_, 'm> {
    /// The number of a row among those of the second dot's result, whose dimensions may be in another order; of a row
    /// that does not exist one that does not exist there.
    fn row_of_result(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, row: &AffineExpr) -> Result<AffineExpr> {
        let order = &self.kernel.parts.rows;
        if order.is_sorted() {
            return Ok(row.clone());
        }
        let queries = self.kernel.queries();
        let extents = &self.kernel.scores.free[self.kernel.sides()[0] as usize];
        let extents: Vec<u64> = extents.iter().copied().filter(|&extent| extent != 1).collect();
        let level = row.level(&s.symbols);
        s.at_level(level, |s| {
            let there = clamped(s, row.clone(), queries - 1)?;
            let places = counters(s, &there, &extents)?;
            let number = order
                .iter()
                .fold(AffineExpr::default(), |number, &d| number.scaled(extents[d] as i64).plus(&places[d]));
            let [row, number] = [row, &number].map(|expr| s.number_of(expr).map(|number| s.lanes_of(number)));
            let (row, number) = (row?, number?);
            let number = row.lt(queries as i64).select(number, queries as i64);
            Ok(s.computed(number, None, Some(queries + 1), level))
        })
    }
}

impl<'e, 'ctx> State<'e, 'ctx> {
    fn raws(&self) -> Vec<inkwell::values::BasicValueEnum<'ctx>> {
        let rows = self.rows.iter().flat_map(|row| [row.largest, row.sum]);
        rows.chain(self.results.iter().flatten().copied()).map(Lanes::raw).collect()
    }

    fn from_raws(emitter: &'e Emitter<'ctx>, raws: &[inkwell::values::BasicValueEnum<'ctx>]) -> State<'e, 'ctx> {
        let lanes = |number: usize| emitter.lanes(raws[number]);
        let rows = [0, 2].map(|at| Row { largest: lanes(at), sum: lanes(at + 1) });
        let results = (4..raws.len()).step_by(4).map(|at| [0, 1, 2, 3].map(|number| lanes(at + number)));
        State { rows, results: results.collect() }
    }
}
