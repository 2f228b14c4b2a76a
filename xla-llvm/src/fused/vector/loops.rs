//! Vector loops: one loop nest over the results with a vectorized innermost loop.

use std::fmt;

use inkwell::values::BasicValueEnum;
use xla_hlo::ops::{Family, Op};
use xla_hlo::{ArrayShape, InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::{FusedKernel, ReduceDirection};
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, SymbolId};
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::loops::plan::LoopPlan;
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::{all_variables, counters, next_variables, outer_variables};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::support;
use crate::fused::tuning::{CHUNK, FEW_ROWS, LARGE_BODY, REDUCE_REGISTERS, fitting};
use crate::target::Target;

/// Partition of a kernel's loops into work items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorLoops {
    plan: LoopPlan,
    /// Lanes of the innermost loop; 1 if results are computed sequentially by vectorized reductions.
    width: u32,
    /// Extents of the loops over work items, outermost first.
    outer: Vec<u64>,
    /// Extents of the loops inside of a work item, except the innermost.
    within: Vec<u64>,
    /// Trip count of the innermost loop.
    inner: u64,
    /// Elements of the innermost loop per work item.
    chunk: u64,
    /// Number of chunks of the innermost loop.
    chunks: u64,
}

impl VectorLoops {
    /// Returns the loops of a kernel on a CPU.
    pub(crate) fn of(choice: &Choice<'_, '_, '_, '_>) -> Result<VectorLoops> {
        let plan = choice.loop_plan()?;
        let width = choice.kernel.vector_width(choice.target(), plan);
        Ok(choice.kernel.vector_loops(plan.clone(), width))
    }

    pub(crate) fn work_items(&self) -> u64 {
        self.outer.iter().product::<u64>() * self.chunks
    }
}

impl fmt::Display for VectorLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} lanes", self.plan, self.width)?;
        match (self.chunks, &self.within[..]) {
            (1, []) => Ok(()),
            (1, within) => write!(f, ", a row of {} a work item", within.iter().product::<u64>() * self.inner),
            (_, _) => write!(f, ", chunks of {}", self.chunk),
        }
    }
}

impl Strategy for VectorLoops {
    fn names() -> &'static [&'static str] {
        &["vector-loops"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<VectorLoops>> {
        VectorLoops::of(choice).map(Some)
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_vector_loops(emitter, frame, self).map(Launch::alone)
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Partitions the loops of a plan.
    pub(crate) fn vector_loops(&self, plan: LoopPlan, width: u32) -> VectorLoops {
        let mut outer = plan.loops();
        // Row reductions compute scalar results sequentially; all other kernels vectorize the innermost loop.
        let inner = if width == 1 { 1 } else { outer.pop().unwrap_or(1) };
        // In a row reduction, a work item is a row: the reduction is computed once, in front of the loops inside of the
        // row, and a result may overwrite an operand that no other row reads.
        let within = match self.rows() {
            Some(rows) => outer.split_off(plan.loops_of(rows).min(outer.len())),
            None => Vec::new(),
        };
        let rows: u64 = outer.iter().product();
        let chunk = self.chunk(width);
        let chunks = if rows < FEW_ROWS { chunk.map_or(1, |chunk| inner.div_ceil(chunk)) } else { 1 };
        VectorLoops { plan, width, outer, within, inner, chunk: chunk.unwrap_or(inner), chunks }
    }

    /// Emits the function's body and returns the number of work items.
    pub(crate) fn emit_vector_loops<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        loops: &VectorLoops,
    ) -> Result<u64> {
        let VectorLoops { plan, width, outer, within, inner, chunk, chunks } = loops;
        let (&width, &inner, &chunk, &chunks) = (width, inner, chunk, chunks);
        let items = loops.work_items();
        let mut fused = self.bind(emitter, frame.pointers)?;
        let is_one_row = outer.iter().product::<u64>() == 1 && within.is_empty() && inner > 1;
        if let (true, WorkItems::Range { begin, end }) = (is_one_row, frame.work_items) {
            // One row: its chunks form one loop over their elements.
            let range = match chunks {
                1 => fused.full_range(inner, width),
                _ => {
                    let (start, end) = (begin * chunk as i64, (end * chunk as i64).smin(inner as i64));
                    Range { start, end, ..fused.full_range(inner, width) }
                }
            };
            self.lanes_loop(&mut fused, plan, &[], range)?;
        } else {
            fused.for_work_items(frame.work_items, items, &mut |s, item| {
                let (row, number) = s.divide(&AffineExpr::symbol(item), chunks as i64)?;
                let counters = counters(s, &row, outer)?;
                let outer = outer_variables(s, plan, &counters)?;
                self.loops_within(s, plan, outer, within, &mut |s| match chunks {
                    1 => Ok(s.full_range(inner, width)),
                    _ => chunk_range(s, &number, loops),
                })
            })?;
        }
        Ok(items)
    }

    /// Emits the loops inside of a row, outermost first, with the innermost one over `range`.
    fn loops_within<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        plan: &LoopPlan,
        outer: Vec<SymbolId>,
        loops: &[u64],
        range: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Range<'e, 'ctx>>,
    ) -> Result<()> {
        let Some((&extent, rest)) = loops.split_first() else {
            let range = range(fused)?;
            return self.lanes_loop(fused, plan, &outer, range);
        };
        let iterations = fused.full_range(extent, 1);
        fused.for_each(iterations, Vec::new(), &mut |s, iteration, _| {
            let mut symbols = outer.clone();
            next_variables(s, plan, &AffineExpr::symbol(iteration), &mut symbols)?;
            self.loops_within(s, plan, symbols, rest, range)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Emits the innermost loop, which stores all results of each iteration.
    pub(crate) fn lanes_loop<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        plan: &LoopPlan,
        outer: &[SymbolId],
        range: Range<'e, 'ctx>,
    ) -> Result<()> {
        fused.row_loop(|s| {
            if range.width == 1 && range.extent == Some(1) {
                let symbols = all_variables(s, plan, outer, None);
                return self.store_all(s, &plan.index(&symbols));
            }
            let mut body = |s: &mut FusedEmitter<'e, 'ctx, 'm>, lane: SymbolId, _: &[BasicValueEnum<'ctx>]| {
                let symbols = all_variables(s, plan, outer, Some(lane));
                s.name_tile(plan, &symbols);
                self.store_all(s, &plan.index(&symbols))?;
                Ok(Vec::new())
            };
            if !(self.has_large_body() && s.for_each_masked(range, &mut body)?) {
                s.for_each(range, Vec::new(), &mut body)?;
            }
            Ok(())
        })
    }

    /// Returns the lanes of the innermost loop; 1 if a scalar result is reduced along lanes.
    pub(crate) fn vector_width(&self, target: &Target, plan: &LoopPlan) -> u32 {
        let inner = plan.loops().last().copied().unwrap_or(1);
        let computed = self.computed();
        let reductions = |direction| computed.iter().any(|&id| self.reduces_into_loop(id) == Some(direction));
        if inner == 1 || reductions(ReduceDirection::AlongRows) {
            return 1;
        }
        let lanes = target.lanes(self.widest_bits());
        let lanes = if reductions(ReduceDirection::Across) { lanes * REDUCE_REGISTERS } else { lanes };
        fitting(lanes, inner)
    }

    /// Returns whether an element takes at least [`LARGE_BODY`] operations, so that masking adds little to its time.
    fn has_large_body(&self) -> bool {
        let (module, graph, elements) = (self.source.module, self.graph(), self.dims.iter().product::<usize>());
        let mut work = 0.0;
        for id in self.computed() {
            match graph[id].opcode().family() {
                Family::Elementwise => work += support::work(module, graph, id),
                Family::Movement => {}
                _ if matches!(graph[id].op(), Op::Constant(_) | Op::Tuple(_)) => {}
                _ => return false,
            }
        }
        work >= LARGE_BODY * elements as f64
    }

    /// Returns the elements of a work item that is a chunk of a row, if rows can be split: no reduction may be
    /// recomputed per chunk. Rows of width 1 have one element.
    fn chunk(&self, width: u32) -> Option<u64> {
        let reductions = self.reductions();
        match &reductions[..] {
            [] => Some(CHUNK),
            _ if reductions.iter().all(|&id| self.reduces_into_loop(id).is_some()) => Some(width.into()),
            _ => None,
        }
    }

    /// Returns the direction of a reduction whose results the innermost loop iterates over; `None` for one of a whole
    /// row.
    fn reduces_into_loop(&self, id: InstrId) -> Option<ReduceDirection> {
        let shape = self.graph()[id].shape();
        let leaves = shape.leaves();
        let dims = leaves.first().and_then(|(_, s)| s.as_array()).map(ArrayShape::dims)?;
        let elements = |dims: &[usize]| dims.iter().product::<usize>();
        if elements(dims) < elements(&self.dims) { None } else { self.reduce_direction(id) }
    }
}

/// Returns the range of elements of chunk `number`.
fn chunk_range<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    number: &AffineExpr,
    loops: &VectorLoops,
) -> Result<Range<'e, 'ctx>> {
    let number = s.number_of(&number.clone().scaled(loops.chunk as i64))?;
    let start = s.lanes_of(number);
    let end = (start + loops.chunk as i64).smin(loops.inner as i64);
    Ok(Range { start, end, ..s.full_range(loops.inner, loops.width) })
}
