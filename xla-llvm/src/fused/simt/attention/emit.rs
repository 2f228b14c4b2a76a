//! The loop over keys: scores of a tile, their softmax so far, and products with the values.

use xla_hlo::{ElementType, Error, Result, Scalar as Element};

use super::logits::coordinates;
use super::online::Row;
use super::operand::{Fragments, Operand, clamped};
use super::plan::{AttentionKernel, AttentionTiling};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::MatmulSide;
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::lanes::{Lanes, Scalar};
use crate::mma::{COLUMNS, OperandType, ROWS};
use crate::simt::{Register, Shuffle, WARP};

/// Four sums of a thread in each matrix: two neighbours of a row, and two of the row eight below.
type Sums<'e, 'ctx> = [Lanes<'e, 'ctx>; 4];

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
        let of_values = match tiling.unit {
            OperandType::F16 | OperandType::Bf16 => vec![values.transposed(lane)],
            OperandType::Tf32 => values.columns(lane).into(),
        };
        Ok(Block { kernel, tiling, batch, rows, member, queries, keys, values, of_queries, of_keys, of_values })
    }

    /// The thread's part in the end.
    fn state(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<State<'e, 'ctx>> {
        let zero = elemental::constant(s.emitter, ElementType::F32, Element::Float(0.0)).lanes();
        let row = Row { largest: zero.constant(f64::NEG_INFINITY), sum: zero };
        let matrices = (self.tiling.heads[1] / COLUMNS) as usize;
        let start = State { rows: [row; 2], results: vec![[zero; 4]; matrices] };
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
        let scores = self.scores(s)?;
        s.emitter.barrier()?;
        self.keys.copy(s, number + 1)?;
        s.emitter.end_copy_group()?;
        let State { rows, mut results } = state;
        let [upper, lower] = [0, 1].map(|half| {
            let logits = self.logits(s, tile, (half, &scores))?;
            let largest = logits.iter().copied().reduce(Lanes::maximum).unwrap_or(rows[half].largest);
            Ok::<_, Error>(rows[half].with(of_row(s.emitter, largest, Lanes::maximum)?, &logits))
        });
        let (upper, lower) = (upper?, lower?);
        for [a, b, c, d] in &mut results {
            (*a, *b, *c, *d) = (*a * upper.scale, *b * upper.scale, *c * lower.scale, *d * lower.scale);
        }
        s.emitter.wait_for_copies(1)?;
        s.emitter.barrier()?;
        self.multiply(s, [&upper.exponentials, &lower.exponentials], &mut results)?;
        s.emitter.barrier()?;
        Ok(State { rows: [upper.row, lower.row], results })
    }

    /// Scores of the warp's rows and the tile's keys.
    fn scores(&self, s: &FusedEmitter<'e, 'ctx, 'm>) -> Result<Vec<Sums<'e, 'ctx>>> {
        let unit = self.tiling.unit;
        let zero = elemental::constant(s.emitter, ElementType::F32, Element::Float(0.0)).lanes();
        let mut scores = vec![[zero; 4]; (self.tiling.keys / COLUMNS) as usize];
        for step in 0..self.tiling.heads[0] / unit.depth() {
            let rows = self.rounded(s, self.queries.load(s, &self.of_queries, (0, step), false)?)?;
            for (group, pair) in scores.chunks_exact_mut(2).enumerate() {
                let keys = self.keys.load(s, &self.of_keys, (group as u64, step), false)?;
                let [a, b, c, d] = self.rounded(s, keys)?;
                pair[0] = s.emitter.multiply_matrices(unit, rows, [a, b], pair[0])?;
                pair[1] = s.emitter.multiply_matrices(unit, rows, [c, d], pair[1])?;
            }
        }
        Ok(scores)
    }

    /// Fragments as tensor cores take them: numbers of TF32 are rounded here.
    fn rounded<const N: usize>(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        mut fragments: [Lanes<'e, 'ctx>; N],
    ) -> Result<[Lanes<'e, 'ctx>; N]> {
        if self.tiling.unit == OperandType::Tf32 {
            for word in &mut fragments {
                *word = s.emitter.round_to_tf32(word.cast_bits(Scalar::F32))?.cast_bits(Scalar::Int(32));
            }
        }
        Ok(fragments)
    }

    /// The logits of one of the thread's rows, by columns; minus infinity for keys that do not exist.
    fn logits(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &AffineExpr,
        (half, scores): (usize, &[Sums<'e, 'ctx>]),
    ) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let extent = self.kernel.keys();
        let width = if extent.is_multiple_of(2) { 2 } else { 1 };
        let row = clamped(s, self.rows[half].clone(), self.kernel.queries() - 1)?;
        let first = tile.clone().scaled(self.tiling.keys as i64).plus(&self.member.clone().scaled(2));
        let mut logits = Vec::new();
        for (matrix, sums) in (0..).zip(scores) {
            for number in (0..2).step_by(width as usize) {
                let key = first.clone().shifted(matrix * COLUMNS as i64 + number);
                let score = match width {
                    1 => sums[2 * half + number as usize],
                    _ => sums[2 * half].concat(sums[2 * half + 1]),
                };
                let inside = key.bounds(&s.symbols).is_some_and(|(_, most)| most < extent as i64);
                let near = clamped(s, key.clone(), extent - width)?;
                let score = Value::new(ElementType::F32, score);
                let mut logit = self.kernel.logit(s, &self.batch, [&row, &near], score)?;
                if !inside {
                    let place = s.number_of(&key)?;
                    let exists = s.lanes_of(place).lt(extent as i64);
                    logit = exists.splat(width as u32).select(logit, f64::NEG_INFINITY);
                }
                logits.extend((0..width as u32).map(|lane| logit.lane(lane)));
            }
        }
        Ok(logits)
    }

    /// Adds products of the thread's exponentials of a tile, by columns, and the tile's values.
    fn multiply(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        exponentials: [&[Lanes<'e, 'ctx>]; 2],
        results: &mut [Sums<'e, 'ctx>],
    ) -> Result<()> {
        let unit = self.tiling.unit;
        let steps = self.tiling.keys / unit.depth();
        for step in 0..steps {
            let rows = self.left_fragments(s, exponentials, step)?;
            match &self.of_values[..] {
                [even, odd] => {
                    for (matrix, sums) in (0..).zip(results.iter_mut()) {
                        let values = [even, odd].map(|part| self.values.load_element(s, part, (step, matrix)));
                        *sums = s.emitter.multiply_matrices(unit, rows, self.rounded(s, values)?, *sums)?;
                    }
                }
                of_values => {
                    for (group, pair) in (0..).zip(results.chunks_exact_mut(2)) {
                        let [a, b, c, d] = self.values.load(s, &of_values[0], (step, group), true)?;
                        pair[0] = s.emitter.multiply_matrices(unit, rows, [a, b], pair[0])?;
                        pair[1] = s.emitter.multiply_matrices(unit, rows, [c, d], pair[1])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Exponentials of a step of the sum over keys, as a left operand: a thread's fragments are those that it has of
    /// the scores. Of TF32 it has neighbouring steps where tensor cores count them four apart, as of the values.
    fn left_fragments(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        [upper, lower]: [&[Lanes<'e, 'ctx>]; 2],
        step: u64,
    ) -> Result<Sums<'e, 'ctx>> {
        if self.tiling.unit == OperandType::Tf32 {
            let at = 2 * step as usize;
            let words = [upper[at], lower[at], upper[at + 1], lower[at + 1]];
            return self.rounded(s, words.map(|word| word.cast_bits(Scalar::Int(32))));
        }
        let at = 4 * step as usize;
        let ty = self.tiling.unit.element_type();
        let pair = |row: &[Lanes<'e, 'ctx>], at: usize| {
            let both = Value::new(ElementType::F32, row[at].concat(row[at + 1]));
            let [low, high] = converted(s.emitter, both, ty)?.stored_lanes().deinterleave();
            let [low, high] = [low, high].map(|half| half.cast_bits(Scalar::Int(16)).zext(32));
            Ok::<_, Error>((high << 16) | low)
        };
        Ok([pair(upper, at)?, pair(lower, at)?, pair(upper, at + 2)?, pair(lower, at + 2)?])
    }

    /// The thread's results as neighbours of a row, and where they are in the second dot's result.
    fn results(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        state: State<'e, 'ctx>,
    ) -> Result<Vec<([AffineExpr; 2], Value<'e, 'ctx>)>> {
        let factor = |row: Row<'e, 'ctx>| {
            let sum = of_row(s.emitter, row.sum, |a, b| a + b)?;
            Ok::<_, Error>(sum.constant(1.0) / sum)
        };
        let [upper, lower] = state.rows.map(factor);
        let factors = [upper?, lower?];
        let [upper, lower] = self.rows.each_ref().map(|row| self.row_of_result(s, row));
        let rows = [upper?, lower?];
        let mut results = Vec::new();
        for (matrix, sums) in (0..).zip(&state.results) {
            let column = self.member.clone().scaled(2).shifted(matrix * COLUMNS as i64);
            for (half, factor) in factors.iter().enumerate() {
                let row = rows[half].clone();
                let both = [sums[2 * half] * *factor, sums[2 * half + 1] * *factor];
                match self.kernel.sides()[2] {
                    MatmulSide::Right => {
                        let value = Value::new(ElementType::F32, both[0].concat(both[1]));
                        results.push(([row, column.clone()], value));
                    }
                    MatmulSide::Left => {
                        for (number, lanes) in (0..).zip(both) {
                            let at = [column.clone().shifted(number), row.clone()];
                            results.push((at, Value::new(ElementType::F32, lanes)));
                        }
                    }
                }
            }
        }
        Ok(results)
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

/// The same operation on the values of the four threads of a row, which all of them get.
fn of_row<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    own: Lanes<'e, 'ctx>,
    combine: impl Fn(Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
) -> Result<Lanes<'e, 'ctx>> {
    debug_assert!(own.scalar() == Scalar::F32);
    [1, 2].into_iter().try_fold(own, |own, bit| Ok(combine(own, emitter.shuffle(own, Shuffle::Xor(bit))?)))
}
