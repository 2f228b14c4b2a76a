//! Kernels with a thread group per row: row reductions, and their elementwise users in the same row.

use std::fmt;

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::emitter::Emitter;
use crate::fused::analysis::{FusedKernel, ReduceDirection, row_reduction};
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, SymbolId};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::plan::LoopPlan;
use crate::fused::loops::variables::{all_variables, counters, next_variables, outer_variables, turn_variables};
use crate::fused::mode::ThreadGroup;
use crate::fused::results::Computed;
use crate::fused::simt::row_shape::RowShape;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::device::many_threads;
use crate::fused::tuning::row_reduce::{MOST_MEMBERS, PER_THREAD, WARPS};
use crate::lanes::Lanes;
use crate::simt::WARP;
use crate::target::Target;

/// Loops over rows, and the thread group of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowReduce {
    pub plan: LoopPlan,
    pub shape: RowShape,
}

impl fmt::Display for RowReduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, rows of {} dimensions, {} threads a row", self.plan, self.shape.rows, self.shape.threads)
    }
}

impl Strategy for RowReduce {
    fn names() -> &'static [&'static str] {
        &["row-reduce"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<RowReduce>> {
        let Some(shape) = choice.rows() else { return Ok(None) };
        Ok(Some(RowReduce { plan: choice.loop_plan()?.clone(), shape }))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_rows(emitter, frame, self)
    }
}

/// Loops over columns. Several threads of a block reduce a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnReduce {
    plan: LoopPlan,
    /// Number of threads that reduce a column together.
    members: u32,
}

impl fmt::Display for ColumnReduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} threads a column", self.plan, self.members)
    }
}

impl Strategy for ColumnReduce {
    fn names() -> &'static [&'static str] {
        &["column-reduce"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<ColumnReduce>> {
        let Some(members) = choice.kernel.column_members(choice.target()) else { return Ok(None) };
        Ok(Some(ColumnReduce { plan: choice.loop_plan()?.clone(), members }))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_columns(emitter, frame, self)
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the number of threads that reduce one result together, if results are column reductions and too few to
    /// occupy the device.
    fn column_members(&self, target: &Target) -> Option<u32> {
        let computed = self.computed();
        let across = |id: &&xla_hlo::InstrId| self.group_reduce_direction(**id) == Some(ReduceDirection::Across);
        let reduction = computed.iter().filter(across).map(|&id| self.reduction_size(id)).min()?;
        let results: u64 = self.dims.iter().map(|&d| d as u64).product();
        let wanted = (many_threads(target) / results.max(1)).min(reduction / PER_THREAD).min(MOST_MEMBERS);
        (wanted >= 2).then(|| 1 << wanted.ilog2())
    }

    /// Emits the body of the function: a block computes [`WARP`] adjacent results, with one lane per result and
    /// `members` warps.
    fn emit_columns<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        &ColumnReduce { ref plan, members }: &ColumnReduce,
    ) -> Result<Launch> {
        let loops = plan.loops();
        let results: u64 = loops.iter().product();
        let mut fused = self.bind(emitter, frame.pointers)?;
        let (group, column) = fused.enter_column(members)?;
        self.say_size(&mut fused);
        // Threads beyond the last result reduce it again: all threads of a block must reach the barrier.
        let result = fused.uniform_symbol(column.smin(results as i64 - 1), Some(results));
        let mut counters = counters(&mut fused, &AffineExpr::symbol(result), &loops)?;
        let inner = counters.pop().unwrap_or_default();
        let number = fused.number_of(&inner)?;
        let lane = fused.lanes_of(number);
        let lane = fused.uniform_symbol(lane, loops.last().copied());
        let symbols = outer_variables(&mut fused, plan, &counters)?;
        let symbols = all_variables(&mut fused, plan, &symbols, (!loops.is_empty()).then_some(lane));
        let values = self.values(&mut fused, &plan.index(&symbols), |_| true)?;
        fused.sync(group)?;
        let stores = group.member.eq(0) & column.ult(results as i64);
        fused.when(stores, &[], |s| {
            s.item_level = s.depth();
            self.store_values(s, values).map(|()| Vec::new())
        })?;
        Ok(Launch { work_items: results.div_ceil(WARP.into()), block: Some(WARP * members) })
    }

    /// Emits the body of a kernel with a thread group per row.
    pub(crate) fn emit_rows<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        RowReduce { plan, shape }: &RowReduce,
    ) -> Result<Launch> {
        let loops = plan.loops();
        let (outer, inner) = loops.split_at(plan.loops_of(shape.rows));
        let work_items: u64 = outer.iter().product();
        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_work_items(frame.work_items.for_groups(shape.threads), work_items, &mut |s, item| {
            let group = s.enter_group(shape.threads)?;
            self.say_size(s);
            let counters = counters(s, &AffineExpr::symbol(item), outer)?;
            let row = outer_variables(s, plan, &counters)?;
            let symbols = all_variables(s, plan, &row, None);
            let index = plan.index(&symbols);
            self.enter_row(s, group, inner);
            let of_rows = self.values(s, &index, |rank| rank <= shape.rows)?;
            if shape.rows < self.dims.len() {
                // A result may alias an operand, so that a row is stored only after the whole group has read it.
                self.reduce_first(s, &index[..shape.rows])?;
                s.sync(group)?;
                self.along_row(s, group, plan, shape.rows, inner, row)?;
            }
            s.leave_row();
            if of_rows.is_empty() {
                return Ok(());
            }
            // Results of the row may overwrite arrays that other threads of the group still read.
            s.sync(group)?;
            self.store_where(s, group.member.eq(0), of_rows)
        })?;
        Ok(match shape.threads {
            WARP => {
                // A warp without a row would reduce data that another warp may already have overwritten.
                let warps = u64::from(WARPS).min(work_items.max(1));
                Launch { work_items: work_items.div_ceil(warps), block: Some(WARP * warps as u32) }
            }
            threads => Launch { work_items, block: Some(threads) },
        })
    }

    /// Stores values if a condition holds.
    fn store_where<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        holds: Lanes<'e, 'ctx>,
        values: Vec<Computed<'e, 'ctx>>,
    ) -> Result<()> {
        let outside = s.item_level;
        s.when(holds, &[], |s| {
            s.item_level = s.depth();
            self.store_values(s, values).map(|()| Vec::new())
        })?;
        s.item_level = outside;
        Ok(())
    }

    fn say_size(&self, s: &mut FusedEmitter<'_, '_, '_>) {
        if let Some(mode) = s.mode.threads() {
            mode.instructions = self.computed().len() as u64;
        }
    }

    /// Enters the row of a group: that of the results within it or, if there are none, of the reductions.
    fn enter_row<'e, 'ctx>(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, group: ThreadGroup<'e, 'ctx>, inner: &[u64]) {
        let extent = match inner {
            [] => self.longest_reduction(),
            [extent] => *extent,
            // The last dimension is one of several loops.
            [..] => return,
        };
        s.enter_row(group, extent, (self.widest_bits(), self.access_width()), self.computed().len());
    }

    /// Computes the reductions of a row before their users.
    fn reduce_first<'e, 'ctx>(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, row: &[AffineExpr]) -> Result<()> {
        let graph = self.graph();
        for id in self.computed().into_iter().rev() {
            if let Op::Reduce(reduce) = graph[id].op()
                && row_reduction(graph, &self.dims, graph[id].operand(0), reduce) == Some(row.len())
            {
                s.elements(id, &row.to_vec())?;
            }
        }
        Ok(())
    }

    /// Stores the results within the row, in nested loops. The group executes the innermost one together.
    fn along_row<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        group: ThreadGroup<'e, 'ctx>,
        plan: &LoopPlan,
        rows: usize,
        inner: &[u64],
        outer: Vec<SymbolId>,
    ) -> Result<()> {
        if let [extent, rest @ ..] = inner
            && !rest.is_empty()
        {
            let range = s.full_range(*extent, 1);
            s.for_each(range, Vec::new(), &mut |s, turn, _| {
                let mut outer = outer.clone();
                next_variables(s, plan, &AffineExpr::symbol(turn), &mut outer)?;
                self.along_row(s, group, plan, rows, rest, outer).map(|()| Vec::new())
            })?;
            return Ok(());
        }
        if let Some(row) = inner.first().and_then(|&extent| s.register_row(extent)) {
            for (number, &turn) in (1..).zip(&row.symbols) {
                let symbols = turn_variables(s, plan, &outer, turn);
                let values = self.values(s, &plan.index(&symbols), |rank| rank > rows)?;
                match row.last.filter(|_| number == row.symbols.len()) {
                    None => self.store_values(s, values)?,
                    Some(exists) => self.store_where(s, exists, values)?,
                }
            }
            return Ok(());
        }
        let (extent, bits) = (inner.first().copied().unwrap_or(1), self.widest_bits());
        let turns = s.load_batch(group, extent, group.access_width(extent, bits));
        let together = s.loads_in_flight(turns.width, bits);
        s.for_turns(turns, together, Vec::new(), &mut |s, places, _| {
            let read = places.iter().map(|place| {
                let lane = s.symbol_of(place, extent)?;
                let symbols = all_variables(s, plan, &outer, Some(lane));
                self.values(s, &plan.index(&symbols), |rank| rank > rows)
            });
            let read = read.collect::<Result<Vec<_>>>()?;
            read.into_iter().try_for_each(|values| self.store_values(s, values)).map(|()| Vec::new())
        })?;
        Ok(())
    }
}
