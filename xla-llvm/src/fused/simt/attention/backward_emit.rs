//! Main loop over columns of a sum over functions of scores: scores of a tile, the function, and its sums or products.

use xla_hlo::ops::{BinaryOp, Op};
use xla_hlo::{ElementType, Error, Result};

use super::backward_plan::{BackwardKernel, BackwardTiling};
use super::function::Columns;
use super::online::of_row;
use super::operand::{Fragments, Operand, clamped};
use super::plan::AttentionTiling;
use super::products::{self, Sums};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::function::{Function, coordinates};
use crate::fused::core::addressing::Addressing;
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::lanes::Lanes;
use crate::mma::ROWS;
use crate::simt::{Register, WARP};

/// Tile of rows, and a thread's position in it.
struct Block<'e, 'ctx, 'a, 'm> {
    kernel: &'a BackwardKernel<'m>,
    tiling: &'a BackwardTiling,
    function: Function<'a, 'm>,
    /// Batch coordinates of the first scores.
    batch: Vec<AffineExpr>,
    /// The thread's two rows.
    rows: [AffineExpr; 2],
    /// Index of the thread among the four that share the rows.
    member: AffineExpr,
    scores: Vec<ScoreTiles<'e, 'ctx>>,
    /// Tile of values, unless it is also one of the columns' tiles.
    values: Option<Operand<'e, 'ctx>>,
    of_values: Vec<Fragments<'e, 'ctx>>,
}

/// Tiles of a dot's rows and columns, and a thread's fragments of them.
struct ScoreTiles<'e, 'ctx> {
    rows: Operand<'e, 'ctx>,
    columns: Operand<'e, 'ctx>,
    of_rows: Fragments<'e, 'ctx>,
    of_columns: Fragments<'e, 'ctx>,
}

/// Accumulators of a thread.
enum State<'e, 'ctx> {
    /// Reductions over the thread's own columns, in both rows.
    Rows([Lanes<'e, 'ctx>; 2]),
    /// Products with values.
    Products(Vec<Sums<'e, 'ctx>>),
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of a kernel that sums functions of scores; a block computes a tile of rows.
    pub(crate) fn emit_score_sum<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        tiling: &BackwardTiling,
    ) -> Result<Launch> {
        let missing = || Error::internal("kernel has no sum over attention scores, which its strategy requires");
        let (kernel, _) = self.score_sum(emitter.target()).ok_or_else(missing)?;
        emitter.allow_all_registers();
        let (tiles, batches) = (kernel.rows().div_ceil(AttentionTiling::ROWS), kernel.scores[0].batches());
        let work_items = batches * tiles;
        let mut s = self.bind(emitter, frame.pointers)?;
        // Exponentials may be approximate, as in attention kernels: tensor cores round their operands by more than that
        // error.
        s.brief = true;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let item = s.uniform_symbol(block?.zext(64), Some(work_items));
        // Adjacent blocks share columns, so that these stay in the cache.
        let at = counters(&mut s, &AffineExpr::symbol(item), &[batches, tiles])?;
        let batch = coordinates(&mut s, &at[0], &kernel.scores[0].batch)?;
        let thread = s.uniform_symbol(thread?.zext(64), Some(AttentionTiling::THREADS));
        let block = Block::new(&mut s, (&kernel, tiling), batch, &at[1], &AffineExpr::symbol(thread))?;
        match block.state(&mut s)? {
            State::Rows(sums) => self.store_rows(&mut s, &block, sums)?,
            State::Products(sums) => self.store_products(&mut s, &block, &sums)?,
        }
        Ok(Launch { work_items, block: Some(AttentionTiling::THREADS as u32) })
    }

    /// Reduces the rows over the four threads that share them, and stores the results.
    fn store_rows<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        block: &Block<'e, 'ctx, '_, 'm>,
        sums: [Lanes<'e, 'ctx>; 2],
    ) -> Result<()> {
        let (graph, parts, extent) = (self.graph(), &block.kernel.parts, block.kernel.rows());
        let Op::Reduce(reduce) = graph[parts.root].op() else {
            return Err(Error::internal(format!(
                "sum over attention scores %{} is not a reduce",
                graph[parts.root].name()
            )));
        };
        let ty = graph[parts.root].shape().expect_array()?.element_type();
        for (row, own) in block.rows.iter().zip(sums) {
            let sum = of_row(s.emitter, own, |a, b| block.combined(a, b))?;
            let value = converted(s.emitter, Value::new(ElementType::F32, sum), ty)?;
            let mut inside = None;
            s.require_up_to(&mut inside, row, extent as i64 - 1)?;
            s.require_up_to(&mut inside, &block.member, 0)?;
            let inside = inside.map_or(s.number(0).eq(0), |guard| guard.mask);
            s.when(inside, &[], |s| {
                // A new symbol, so that computations that depend on it are not hoisted above the branch.
                let number = s.number_of(row)?;
                let row = AffineExpr::symbol(s.uniform_symbol(s.lanes_of(number), Some(extent)));
                let index = block.function.index(s, &block.batch, [&row, &AffineExpr::default()])?;
                let kept = (0..index.len()).filter(|d| !reduce.dimensions.contains(d));
                let index: Index = kept.map(|d| index[d].clone()).collect();
                s.values.insert((parts.root, index.clone(), 0), vec![value]);
                self.store_all(s, &index)?;
                Ok(Vec::new())
            })?;
        }
        Ok(())
    }

    /// Stores a thread's products.
    fn store_products<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        block: &Block<'e, 'ctx, '_, 'm>,
        sums: &[Sums<'e, 'ctx>],
    ) -> Result<()> {
        let missing = || Error::internal("sum over attention scores has no dot for its products");
        let result = block.kernel.result.as_ref().ok_or_else(missing)?;
        let batch = block.batch_of_result(s)?;
        let sink = Sink::new(result, &batch, Cut::whole(result.k()), (&AffineExpr::default(), None))?;
        for (at, value) in products::placed(sums, &block.rows, &block.member, block.kernel.values()) {
            self.store_vector(s, &sink, [&at[0], &at[1]], value)?;
        }
        Ok(())
    }
}

impl<'e, 'ctx, 'a, 'm> Block<'e, 'ctx, 'a, 'm> {
    fn new(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (kernel, tiling): (&'a BackwardKernel<'m>, &'a BackwardTiling),
        batch: Vec<AffineExpr>,
        tile: &AffineExpr,
        thread: &AffineExpr,
    ) -> Result<Self> {
        let (warp, lane) = s.divide(thread, i64::from(WARP))?;
        let (group, member) = s.divide(&lane, 4)?;
        let first = tile.clone().scaled(AttentionTiling::ROWS as i64);
        let of_warp = warp.scaled(ROWS as i64);
        let number = s.number_of(&lane)?;
        let lane = s.lanes_of(number);
        let number = s.number_of(&of_warp)?;
        let first_row = s.lanes_of(number);
        let rows = [0, ROWS / 2].map(|half| first.clone().plus(&of_warp).plus(&group).shifted(half as i64));
        let function = kernel.function(s.graph());
        let (scores, values, of_values) = (Vec::new(), None, Vec::new());
        let mut block = Block { kernel, tiling, function, batch, rows, member, scores, values, of_values };
        let zero = AffineExpr::default();
        let index = block.function.index(s, &block.batch, [&zero, &zero])?;
        for (number, matmul) in kernel.scores.iter().enumerate() {
            let [of_rows, of_columns] = tiling.shapes(number);
            let batch = &block.function.of[number].index(&index)[..matmul.batch.len()];
            let side = kernel.rows_of(number);
            let rows = Operand::new(s, (matmul, side), of_rows, (batch, &first), thread)?;
            let columns = Operand::new(s, (matmul, side.other()), of_columns, (batch, &zero), thread)?;
            let (of_rows, of_columns) = (rows.left(first_row, lane), columns.right(lane));
            block.scores.push(ScoreTiles { rows, columns, of_rows, of_columns });
        }
        if let (Some(result), Some(shape)) = (&kernel.result, tiling.values()) {
            let batch = block.batch_of_result(s)?;
            block.values = Some(Operand::new(s, (result, kernel.values()), shape, (&batch, &zero), thread)?);
        }
        block.of_values = block.values().map_or_else(Vec::new, |values| products::of_values(tiling.unit, values, lane));
        Ok(block)
    }

    /// Returns the values that a last dot multiplies by, if there is one.
    fn values(&self) -> Option<&Operand<'e, 'ctx>> {
        self.values.as_ref().or_else(|| Some(&self.scores[self.tiling.shared?].columns))
    }

    /// Returns the batch coordinates of the last dot.
    fn batch_of_result(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Vec<AffineExpr>> {
        let zero = AffineExpr::default();
        let index = self.function.index(s, &self.batch, [&zero, &zero])?;
        let parts = &self.kernel.parts;
        let Op::Dot(dot) = s.graph()[parts.root].op() else { return Ok(Vec::new()) };
        let dims = if parts.operand == 0 { &dot.dims.lhs_batch } else { &dot.dims.rhs_batch };
        Ok(dims.iter().map(|&d| index[d].clone()).collect())
    }

    fn combined(&self, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        if self.kernel.parts.combiner == BinaryOp::Maximum { a.maximum(b) } else { a + b }
    }

    /// Returns the identity of the combiner.
    fn neutral(&self) -> f64 {
        if self.kernel.parts.combiner == BinaryOp::Maximum { f64::NEG_INFINITY } else { 0.0 }
    }

    /// Emits the loop over columns, and returns the thread's final state.
    fn state(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<State<'e, 'ctx>> {
        let zero = elemental::constant(s.emitter, ElementType::F32, xla_hlo::Scalar::Float(0.0)).lanes();
        let start = match self.tiling.value {
            Some(value) => State::Products(products::zeros(s, value)),
            None => State::Rows([zero.constant(self.neutral()); 2]),
        };
        for tiles in &self.scores {
            tiles.rows.copy(s, s.number(0))?;
        }
        self.copy_early(s, s.number(0))?;
        self.copy_late(s, s.number(0))?;
        s.emitter.end_copy_group()?;
        let tiles = self.kernel.columns().div_ceil(self.tiling.columns);
        let range = s.full_range(tiles, 1);
        let raws = s.for_each(range, start.raws(), &mut |s, tile, carried| {
            s.emitter.keep_loop()?;
            let state = start.with(s.emitter, carried);
            self.add_tile(s, &AffineExpr::symbol(tile), state).map(|state| state.raws())
        })?;
        // The last iteration has started copies that only write zeros.
        s.emitter.wait_for_copies(0)?;
        Ok(start.with(s.emitter, &raws))
    }

    /// Starts the copies of the columns that are needed only for scores.
    fn copy_early(&self, s: &FusedEmitter<'e, 'ctx, 'm>, tile: Lanes<'e, 'ctx>) -> Result<()> {
        let own = self.scores.iter().enumerate().filter(|(number, _)| self.tiling.shared != Some(*number));
        own.map(|(_, tiles)| &tiles.columns).try_for_each(|columns| columns.copy(s, tile))
    }

    /// Starts the copies of the values.
    fn copy_late(&self, s: &FusedEmitter<'e, 'ctx, 'm>, tile: Lanes<'e, 'ctx>) -> Result<()> {
        self.values().map_or(Ok(()), |values| values.copy(s, tile))
    }

    /// Processes a tile of columns, whose copies are in flight, and starts the copies of the next one.
    fn add_tile(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &AffineExpr,
        state: State<'e, 'ctx>,
    ) -> Result<State<'e, 'ctx>> {
        let (unit, size) = (self.tiling.unit, self.tiling.columns);
        let number = s.number_of(tile)?;
        let number = s.lanes_of(number);
        s.emitter.wait_for_copies(0)?;
        s.emitter.barrier()?;
        let scores = self.scores.iter().zip(&self.tiling.heads).map(|(tiles, &head)| {
            let sides = [(&tiles.rows, &tiles.of_rows), (&tiles.columns, &tiles.of_columns)];
            products::scores(s, unit, sides, (size, head))
        });
        let scores = scores.collect::<Result<Vec<_>>>()?;
        s.emitter.barrier()?;
        self.copy_early(s, number + 1)?;
        s.emitter.end_copy_group()?;
        let columns = Columns::of_tile(s, tile, &self.member, [size, self.kernel.columns()])?;
        let [upper, lower] = [0, 1].map(|half| {
            let row = clamped(s, self.rows[half].clone(), self.kernel.rows() - 1)?;
            self.function.values(s, (&self.batch, &row), &columns, (half, &scores), self.neutral())
        });
        let (upper, lower) = (upper?, lower?);
        match state {
            State::Rows(sums) => {
                let with = |sum, values: Vec<_>| values.into_iter().fold(sum, |a, b| self.combined(a, b));
                Ok(State::Rows([with(sums[0], upper), with(sums[1], lower)]))
            }
            State::Products(mut sums) => {
                let missing = || Error::internal("sum over attention scores has no values for its products");
                let values = (self.values().ok_or_else(missing)?, &self.of_values[..]);
                products::multiply(s, (unit, size), [&upper, &lower], values, &mut sums)?;
                s.emitter.barrier()?;
                self.copy_late(s, number + 1)?;
                s.emitter.end_copy_group()?;
                Ok(State::Products(sums))
            }
        }
    }
}

impl<'e, 'ctx> State<'e, 'ctx> {
    fn raws(&self) -> Vec<inkwell::values::BasicValueEnum<'ctx>> {
        match self {
            State::Rows(rows) => rows.map(Lanes::raw).to_vec(),
            State::Products(sums) => sums.iter().flatten().copied().map(Lanes::raw).collect(),
        }
    }

    /// Returns a state of the same kind as this one from the values that the loop carries.
    fn with(&self, emitter: &'e Emitter<'ctx>, raws: &[inkwell::values::BasicValueEnum<'ctx>]) -> Self {
        let lanes = |number: usize| emitter.lanes(raws[number]);
        match self {
            State::Rows(_) => State::Rows([lanes(0), lanes(1)]),
            State::Products(sums) => {
                let matrix = |number: usize| [0, 1, 2, 3].map(|at| lanes(4 * number + at));
                State::Products((0..sums.len()).map(matrix).collect())
            }
        }
    }
}
