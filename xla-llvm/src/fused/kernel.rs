//! A kernel: a fusion (or one operation) as a function over a range of units of work.
//!
//! The function takes an array of pointers (operands, then results) and the first and the last-but-one unit. Units are
//! independent; a caller may run ranges of them on several threads. On a target whose threads run kernels side by side,
//! each thread does the unit of its number.

use inkwell::context::Context;
use inkwell::values::PointerValue;
use xla_hlo::ops::{Op, Reduce};
use xla_hlo::{ArrayShape, Computation, Error, InstrId, Result, ResultExt, Shape};

use super::core::address::compute_bits;
use super::core::reduce::{reduces_in_parts, splits_into_lanes};
use super::loops::affine::{AffineExpr, Index, Symbol, SymbolId};
use super::loops::frame::{Frame, Units};
use super::loops::nest::Range;
use super::loops::plan::{LoopPlan, carrier, trial_symbols};
use super::simt::matmul::tiles::Tiling;
use super::source::KernelSource;
use super::vector::transpose::TileGrid;
use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::fused::emitter::{FusedEmitter, Source, SymbolValue};
use crate::simt::Register;

/// Rows (outermost iterations) below which one row is cut into several units.
const FEW_ROWS: u64 = 16;
/// Elements in a unit that is a piece of a row; a multiple of every lane count.
const PIECE: u64 = 4096;

/// Vector registers of accumulators in a reduction across lanes, so that its steps overlap.
pub(crate) const REDUCE_REGISTERS: u32 = 8;

/// What a caller must know to run a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// Independent units of work; run with `0..units` in all, or by as many threads.
    pub units: u64,
    /// Threads that do a unit together, where one does not do it alone; see [`crate::simt`].
    pub block: Option<u32>,
    /// Bytes of memory that they share.
    pub shared_bytes: u64,
    /// Rough cost of all units together, in elementary operations on one element.
    pub work: f64,
}

/// One stored result.
pub(crate) struct Output {
    root: InstrId,
    /// Which value, for a reduction of several arrays.
    value: usize,
    pub shape: ArrayShape,
}

/// Writes the kernel's function into the emitter's module.
///
/// The kernel of a scatter works in place: its results hold its inputs already. Its units are those of its
/// [`ScatterPlan`](super::ScatterPlan), each run of them a share of the windows that writes what no other share writes;
/// each call goes through the windows of its share in order, so that few calls are best: one a thread.
pub fn emit_kernel(emitter: &Emitter<'_>, source: &KernelSource<'_>, name: &str) -> Result<Kernel> {
    let graph = &source.module[source.computation];
    let context = || format!("%{} in {}", graph[source.root].name(), graph.name());
    match graph[source.root].op() {
        Op::Scatter(op) => super::sequential::scatter::emit(emitter, source, op, name).context(context),
        _ => Writer::new(source)?.emit(emitter, name).context(context),
    }
}

/// A result's number, the index of an element of it, and its value.
pub(crate) type Computed<'e, 'ctx> = (usize, Index, Value<'e, 'ctx>);

/// How many units there are, and how many threads do one.
pub(crate) struct Launch {
    pub units: u64,
    pub block: Option<u32>,
}

impl Launch {
    /// Units that one thread does each.
    fn alone(units: u64) -> Launch {
        Launch { units, block: None }
    }
}

/// Writes one kernel.
pub(crate) struct Writer<'a, 'm> {
    pub source: &'a KernelSource<'m>,
    pub outputs: Vec<Output>,
    /// Dimensions that loops run over.
    pub dims: Vec<usize>,
}

impl<'a, 'm> Writer<'a, 'm> {
    pub fn new(source: &'a KernelSource<'m>) -> Result<Self> {
        let graph = &source.module[source.computation];
        let roots = match graph[source.root].op() {
            Op::Tuple(_) => graph[source.root].operands().to_vec(),
            _ => vec![source.root],
        };
        let mut outputs = Vec::new();
        for root in roots {
            for (value, (_, leaf)) in graph[root].shape().leaves().into_iter().enumerate() {
                outputs.push(Output { root, value, shape: leaf.expect_array()?.clone() });
            }
        }
        let mut writer = Writer { source, outputs, dims: Vec::new() };
        writer.dims = writer.loop_dims()?;
        Ok(writer)
    }

    pub fn graph(&self) -> &'m Computation {
        &self.source.module[self.source.computation]
    }

    /// Dimensions of the loops: of the result with most elements, or of the box that is written in place.
    fn loop_dims(&self) -> Result<Vec<usize>> {
        if self.source.in_place {
            let update = self.graph()[self.source.root].operand(1);
            return Ok(self.graph()[update].shape().expect_array()?.dims().to_vec());
        }
        let dims = self.outputs.iter().map(|o| o.shape.dims()).max_by_key(|d| d.iter().product::<usize>());
        let dims = dims.ok_or_else(|| Error::internal("a kernel without a result"))?.to_vec();
        match self.outputs.iter().find(|o| !dims.starts_with(o.shape.dims())) {
            Some(odd) => Err(Error::unimplemented(format!("results of {:?} and {} from one kernel", dims, odd.shape))),
            None => Ok(dims),
        }
    }

    fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let frame = Frame::open(emitter, name, self.source.pointer_count())?;
        let Launch { units, block } = match self.dims.contains(&0) {
            true => Launch::alone(0),
            false => self.emit_body(emitter, frame)?,
        };
        emitter.end_kernel()?;
        let shared_bytes = emitter.shared_bytes();
        Ok(Kernel { name: name.to_string(), units, block, shared_bytes, work: self.work() })
    }

    /// Writes the function's body.
    fn emit_body<'ctx>(&self, emitter: &Emitter<'ctx>, frame: Frame<'_, 'ctx>) -> Result<Launch> {
        if let Some(strands) = self.strands(emitter.target())? {
            return self.emit_strands(emitter, frame, &strands).map(Launch::alone);
        }
        match self.product(emitter.target()) {
            Some((product, Some(thin))) => return self.emit_thin(emitter, frame, &product, thin),
            Some((product, None)) => {
                let tiling = Tiling::new(&product, emitter.target());
                return self.emit_product(emitter, frame, &product, tiling);
            }
            None => {}
        }
        let plan = self.plan(emitter)?;
        if emitter.target().simt().is_some() {
            return self.emit_simt(emitter, frame, &plan);
        }
        let width = self.width(emitter, &plan);
        if let Some(across) = plan.across()
            && width > 1
            && !self.has_reductions()
        {
            return self.emit_tiles(emitter, frame, &plan, across, width).map(Launch::alone);
        }
        let mut loops = plan.loops();
        // Row reductions take scalar results one after the other; everything else takes lanes along the innermost loop.
        let inner = if width == 1 { 1 } else { loops.pop().unwrap_or(1) };
        // Where rows are reduced, a unit is a row: the reduction is computed once, in front of the loops inside of the
        // row, and a result may lie over an operand that no other row reads.
        let within = match self.rows() {
            Some(rows) => loops.split_off(plan.loops_of(rows).min(loops.len())),
            None => Vec::new(),
        };
        let rows: u64 = loops.iter().product();
        let piece = self.piece(width);
        let pieces = if rows < FEW_ROWS { piece.map_or(1, |piece| inner.div_ceil(piece)) } else { 1 };
        let piece = piece.unwrap_or(inner);
        let units = rows * pieces;

        let mut fused = self.bind(emitter, frame.pointers)?;
        if let (1, Units::Range { begin, end }, true) = (rows, frame.units, inner > 1 && within.is_empty()) {
            // One row: its pieces are one loop over their elements.
            let (start, stop) = (begin * piece as i64, (end * piece as i64).smin(inner as i64));
            let range = match pieces {
                1 => fused.full_range(inner, width),
                _ => Range {
                    start,
                    end: stop,
                    extent: Some(inner),
                    width,
                    step: width.into(),
                    whole: inner.is_multiple_of(u64::from(width)),
                },
            };
            self.lanes_loop(&mut fused, &plan, &[], range)?;
        } else {
            fused.for_units(frame.units, units, &mut |s, unit| {
                let unit = AffineExpr::symbol(unit);
                let (row, number) = s.divide(&unit, pieces as i64)?;
                let counters = counters(s, &row, &loops)?;
                let outer = outer_variables(s, &plan, &counters)?;
                self.loops_within(s, &plan, outer, &within, &mut |s| match pieces {
                    1 => Ok(s.full_range(inner, width)),
                    _ => piece_range(s, &number, piece, inner, width),
                })
            })?;
        }
        Ok(Launch::alone(units))
    }

    /// The loops inside of a row, outermost first, and the innermost one over that range.
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
        let turns = fused.full_range(extent, 1);
        fused.for_each(turns, Vec::new(), &mut |s, turn, _| {
            let mut symbols = outer.clone();
            next_variables(s, plan, &AffineExpr::symbol(turn), &mut symbols)?;
            self.loops_within(s, plan, symbols, rest, range)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// As [`emit_body`](Self::emit_body), for a target with threads.
    fn emit_simt<'ctx>(&self, emitter: &Emitter<'ctx>, frame: Frame<'_, 'ctx>, plan: &LoopPlan) -> Result<Launch> {
        if let Some(shape) = self.row_shape() {
            return self.emit_rows(emitter, frame, plan, shape);
        }
        if let Some(threads) = self.column_team() {
            return self.emit_columns(emitter, frame, plan, threads);
        }
        match plan.across().filter(|_| !self.has_reductions() && !self.source.in_place) {
            Some(across) => self.emit_shared_tiles(emitter, frame, plan, across),
            None => self.emit_threads(emitter, frame, plan).map(Launch::alone),
        }
    }

    /// A unit is a tile of two loops.
    fn emit_tiles<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        plan: &LoopPlan,
        across: usize,
        width: u32,
    ) -> Result<u64> {
        let grid = TileGrid::new(plan, across, self.widest_bits(), width);
        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_units(frame.units, grid.units(), &mut |s, unit| {
            let counters = counters(s, &AffineExpr::symbol(unit), grid.loops())?;
            s.tile(plan, &grid, counters, width, &mut |s, counters, range| {
                let outer = outer_variables(s, plan, counters)?;
                self.lanes_loop(s, plan, &outer, range)
            })
        })?;
        Ok(grid.units())
    }

    /// The innermost loop: stores all results for each turn.
    fn lanes_loop<'e, 'ctx>(
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
            s.for_each(range, Vec::new(), &mut |s, lane, _| {
                let symbols = all_variables(s, plan, outer, Some(lane));
                s.name_tile(plan, &symbols);
                self.store_all(s, &plan.index(&symbols))?;
                Ok(Vec::new())
            })?;
            Ok(())
        })
    }

    /// Computes all results of one turn, then stores them: a result may lie where an operand of another one is.
    pub fn store_all<'e, 'ctx>(&self, fused: &mut FusedEmitter<'e, 'ctx, 'm>, index: &Index) -> Result<()> {
        if self.source.in_place {
            let root = self.source.root;
            let (operand, update) = (self.graph()[root].operand(0), self.graph()[root].operand(1));
            let starts = fused.starts(root, 2, operand, &self.dims)?;
            let value = fused.element(update, index)?;
            let at: Index = index.iter().zip(&starts).map(|(c, s)| c.clone().plus(s)).collect();
            let target = self.target(fused, 0);
            return fused.store(&target, &at, value);
        }
        let rows = fused.row_count();
        fused.begin_row(index.get(..rows).unwrap_or(&[]));
        let values = self.values(fused, index, |_| true)?;
        self.store_values(fused, values)
    }

    /// The values of one turn of the results whose rank is `wanted`, with their numbers and indices.
    pub fn values<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        index: &Index,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Computed<'e, 'ctx>>> {
        let mut values = Vec::with_capacity(self.outputs.len());
        for (number, output) in self.outputs.iter().enumerate().filter(|(_, o)| wanted(o.shape.rank())) {
            let index: Index = index[..output.shape.rank()].to_vec();
            let value = fused.elements(output.root, &index)?.get(output.value).copied();
            values.push((number, index, value.ok_or_else(|| Error::internal("a result that is not there"))?));
        }
        Ok(values)
    }

    /// Stores what [`Writer::values`] gave.
    pub fn store_values<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        values: Vec<Computed<'e, 'ctx>>,
    ) -> Result<()> {
        for (number, index, value) in values {
            let target = self.target(fused, number);
            // Not in front of the test whether there is something to do.
            let level = fused.level(&index).max(fused.unit_level);
            fused.at_level(level, |s| s.store(&target, &index, value))?;
        }
        Ok(())
    }

    /// Where a result goes.
    fn target<'ctx>(&self, fused: &FusedEmitter<'_, 'ctx, 'm>, number: usize) -> Source<'ctx> {
        Source { base: fused.pointers[self.source.inputs.len() + number], shape: self.outputs[number].shape.clone() }
    }

    /// Emits the kernel once for one element into a module that is thrown away, to see what it reads and where.
    fn plan(&self, emitter: &Emitter<'_>) -> Result<LoopPlan> {
        let mut plan = LoopPlan::new(&self.dims);
        loop {
            let context = Context::create();
            let trial = Emitter::new(&context, "trial", emitter.target(), emitter.options());
            let frame = Frame::open(&trial, "trial", self.source.pointer_count())?;
            let mut fused = self.bind(&trial, frame.pointers)?;
            let symbols = trial_symbols(&plan, &mut fused.symbols);
            // Any number that is not known, so that no loop is seen to be empty.
            let value = SymbolValue::Uniform(match frame.units {
                Units::Range { begin, .. } => begin,
                Units::Thread | Units::Team { .. } => trial.register(Register::Thread)?.zext(64),
            });
            fused.symbol_values = vec![value; symbols.len()];
            self.store_all(&mut fused, &plan.index(&symbols))?;
            let survey = std::mem::take(&mut fused.survey);
            match plan.split(&survey, &symbols) {
                Some(split) => plan = split,
                None => {
                    let borders = [fused.row_count(), self.rows().unwrap_or_default()];
                    return Ok(plan.merged(&survey, &symbols, &borders));
                }
            }
        }
    }

    /// A new emitter in the function's entry, with operands bound to its pointers.
    pub fn bind<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        pointers: Vec<PointerValue<'ctx>>,
    ) -> Result<FusedEmitter<'e, 'ctx, 'm>> {
        let mut fused = FusedEmitter::new(emitter, self.source.module, self.source.computation)?;
        fused.pointers = pointers;
        for (number, &input) in self.source.inputs.iter().enumerate() {
            let shape = self.graph()[input].shape().expect_array()?.clone();
            fused.sources.insert(input, Source { base: fused.pointers[number], shape });
        }
        let results: Vec<InstrId> = self.outputs.iter().map(|o| o.root).collect();
        match emitter.target().simt() {
            None => fused.plan_rows(&self.dims, &results),
            // A thread has no memory of its own that is worth keeping rows in.
            Some(_) => fused.set_rows(self.row_shape().map_or(0, |shape| shape.rows)),
        }
        Ok(fused)
    }

    /// Instructions that the kernel computes.
    pub fn computed(&self) -> Vec<InstrId> {
        let graph = self.graph();
        let mut seen = std::collections::HashSet::from([self.source.root]);
        let mut work = vec![self.source.root];
        let mut found = Vec::new();
        while let Some(id) = work.pop() {
            if self.source.inputs.contains(&id) {
                continue;
            }
            found.push(id);
            work.extend(graph[id].operands().iter().copied().filter(|&o| seen.insert(o)));
        }
        found
    }

    pub fn has_reductions(&self) -> bool {
        let reduction =
            |id: &InstrId| matches!(self.graph()[*id].op(), Op::Reduce(_) | Op::Dot(_) | Op::Convolution(_));
        self.computed().iter().any(reduction)
    }

    /// Lanes of the innermost loop; 1 where a scalar result is reduced along lanes.
    fn width(&self, emitter: &Emitter<'_>, plan: &LoopPlan) -> u32 {
        let inner = plan.loops().last().copied().unwrap_or(1);
        let computed = self.computed();
        let reductions = |direction| computed.iter().any(|&id| self.reduces_into_loop(id) == Some(direction));
        if inner == 1 || reductions(ReduceDirection::AlongRows) {
            return 1;
        }
        let lanes = emitter.target().lanes(self.widest_bits());
        let lanes = if reductions(ReduceDirection::Across) { lanes * REDUCE_REGISTERS } else { lanes };
        fitting(lanes, inner)
    }

    /// Elements of a unit that is a piece of a row, where rows can be cut: nothing may be reduced again for each piece.
    fn piece(&self, width: u32) -> Option<u64> {
        let is_reduction =
            |id: &InstrId| matches!(self.graph()[*id].op(), Op::Reduce(_) | Op::Dot(_) | Op::Convolution(_));
        let reductions: Vec<InstrId> = self.computed().into_iter().filter(is_reduction).collect();
        match &reductions[..] {
            [] => Some(PIECE),
            _ if width > 1 && reductions.iter().all(|&id| self.reduces_into_loop(id).is_some()) => Some(width.into()),
            _ => None,
        }
    }

    /// Bits of the widest lane that is computed with.
    pub fn widest_bits(&self) -> u32 {
        let computed = self.computed();
        let all = computed.iter().chain(&self.source.inputs);
        all.filter_map(|&id| widest(self.graph()[id].shape())).max().unwrap_or(32)
    }

    /// How a reduction whose results the innermost loop runs over (not one of a whole row of it) reduces.
    fn reduces_into_loop(&self, id: InstrId) -> Option<ReduceDirection> {
        let shape = self.graph()[id].shape();
        let leaves = shape.leaves();
        let dims = leaves.first().and_then(|(_, s)| s.as_array()).map(ArrayShape::dims)?;
        let elements = |dims: &[usize]| dims.iter().product::<usize>();
        if elements(dims) < elements(&self.dims) { None } else { self.reduce_direction(id) }
    }

    /// How an instruction reduces: along the innermost dimension of its operand, or across it.
    pub fn reduce_direction(&self, root: InstrId) -> Option<ReduceDirection> {
        let instruction = &self.graph()[root];
        let along = match instruction.op() {
            Op::Reduce(op) => {
                let along = self.reduces_along(root, op)?;
                let ty = instruction.shape().as_array().map(ArrayShape::element_type);
                if ty.and_then(|ty| splits_into_lanes(self.source.module, op, ty)).is_none() {
                    return Some(ReduceDirection::SideBySide);
                }
                along
            }
            Op::Dot(dot) => {
                let rhs = self.graph()[instruction.operand(1)].shape().as_array()?;
                dot.dims.rhs_contracting.contains(&rhs.rank().saturating_sub(1))
            }
            _ => return None,
        };
        Some(if along { ReduceDirection::AlongRows } else { ReduceDirection::Across })
    }

    /// The same for threads that reduce parts and put them together.
    pub fn team_reduce_direction(&self, root: InstrId) -> Option<ReduceDirection> {
        match (self.reduce_direction(root)?, self.graph()[root].op()) {
            (ReduceDirection::SideBySide, Op::Reduce(op)) if reduces_in_parts(self.source.module, op) => {
                let along = self.reduces_along(root, op)?;
                Some(if along { ReduceDirection::AlongRows } else { ReduceDirection::Across })
            }
            (direction, _) => Some(direction),
        }
    }

    /// Whether a reduction reduces the innermost dimension.
    fn reduces_along(&self, root: InstrId, op: &Reduce) -> Option<bool> {
        let shape = self.graph()[self.graph()[root].operand(0)].shape().as_array()?;
        let innermost = shape.dims().iter().rposition(|&extent| extent > 1)?;
        Some(op.dimensions.contains(&innermost))
    }

    /// Elements of one reduction of an instruction that reduces.
    pub fn reduction_size(&self, id: InstrId) -> u64 {
        let instruction = &self.graph()[id];
        let dims = instruction.operands().first().and_then(|&o| self.graph()[o].shape().as_array());
        let reduced: &[usize] = match instruction.op() {
            Op::Reduce(reduce) => &reduce.dimensions,
            Op::Dot(dot) => &dot.dims.lhs_contracting,
            _ => &[],
        };
        dims.map_or(1, |shape| reduced.iter().map(|&d| shape.dims()[d] as u64).product())
    }

    /// How many of the dimensions number rows, where the kernel reduces rows: no result has fewer dimensions.
    pub fn rows(&self) -> Option<usize> {
        let graph = self.graph();
        let least = self.outputs.iter().map(|o| o.shape.rank()).min()?;
        let rows = |id: &InstrId| match graph[*id].op() {
            Op::Reduce(reduce) => row_reduction(graph, &self.dims, graph[*id].operand(0), reduce),
            _ => None,
        };
        self.computed().iter().filter_map(rows).min().map(|rows| rows.min(least))
    }

    /// Elementary operations in all, roughly.
    pub fn work(&self) -> f64 {
        self.computed().into_iter().map(|id| super::support::work(self.source.module, self.graph(), id)).sum()
    }
}

/// So many lanes, or fewer where a loop is shorter.
pub(crate) fn fitting(mut lanes: u32, extent: u64) -> u32 {
    while lanes > 1 && u64::from(lanes) >= 2 * extent {
        lanes /= 2;
    }
    lanes
}

/// How many of the dimensions number rows, for a reduction of whole rows of them.
pub(crate) fn row_reduction(graph: &Computation, dims: &[usize], operand: InstrId, reduce: &Reduce) -> Option<usize> {
    let is_full = graph[operand].shape().as_array().is_some_and(|a| a.dims() == dims);
    let rows = dims.len().checked_sub(reduce.dimensions.len())?;
    // Only whole rows: a reduction of other dimensions goes through all rows, one of nothing or of single elements has
    // none.
    let is_row = reduce.dimensions.iter().all(|&d| d >= rows) && dims[rows..].iter().any(|&d| d > 1);
    (is_full && is_row).then_some(rows)
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ReduceDirection {
    /// Neighbours in one reduction are lanes.
    AlongRows,
    /// Neighbouring reductions are lanes, and their elements neighbours in memory.
    Across,
    /// Neighbouring reductions are lanes, wherever their elements are: the reduction must go in order.
    SideBySide,
}

fn widest(shape: &Shape) -> Option<u32> {
    shape.leaves().iter().filter_map(|(_, s)| s.element_type()).map(compute_bits).max()
}

/// Counters of the outer loops from the number of a row.
pub(crate) fn counters(s: &mut FusedEmitter<'_, '_, '_>, row: &AffineExpr, loops: &[u64]) -> Result<Vec<AffineExpr>> {
    let mut rest = row.clone();
    let mut counters = vec![AffineExpr::default(); loops.len()];
    for (counter, &extent) in counters.iter_mut().zip(loops).skip(1).rev() {
        let (quotient, remainder) = s.divide(&rest, extent as i64)?;
        *counter = remainder;
        rest = quotient;
    }
    if let Some(first) = counters.first_mut() {
        *first = rest;
    }
    Ok(counters)
}

/// The elements of a piece of a row.
fn piece_range<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    number: &AffineExpr,
    piece: u64,
    inner: u64,
    width: u32,
) -> Result<Range<'e, 'ctx>> {
    let number = s.number_of(&number.clone().scaled(piece as i64))?;
    let start = s.lanes_of(number);
    let end = (start + piece as i64).smin(inner as i64);
    Ok(Range {
        start,
        end,
        extent: Some(inner),
        width,
        step: width.into(),
        whole: inner.is_multiple_of(u64::from(width)),
    })
}

/// Symbols of the variables of the outer loops, whose counters are given.
pub(crate) fn outer_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    counters: &[AffineExpr],
) -> Result<Vec<SymbolId>> {
    let mut symbols = Vec::new();
    counters.iter().try_for_each(|counter| next_variables(s, plan, counter, &mut symbols))?;
    Ok(symbols)
}

/// Adds the symbols of the next loop's variables to those of the loops around it.
pub(crate) fn next_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    counter: &AffineExpr,
    symbols: &mut Vec<SymbolId>,
) -> Result<()> {
    if let Some(group) = plan.groups().iter().find(|group| group.start == symbols.len()) {
        let known = s.number_of(counter)?;
        let value = SymbolValue::Uniform(s.lanes_of(known));
        group_variables(s, plan, group, value, counter.level(&s.symbols), symbols);
    }
    Ok(())
}

/// Symbols of all variables: the outer ones, and those of the innermost loop with its counter (0 where there is none).
pub(crate) fn all_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    outer: &[SymbolId],
    lane: Option<SymbolId>,
) -> Vec<SymbolId> {
    let mut symbols = outer.to_vec();
    let (value, level) = match lane {
        Some(lane) => (s.symbol_value(lane), s.symbols.get(lane).level),
        None => (SymbolValue::Uniform(s.number(0)), 0),
    };
    for group in plan.groups().iter().filter(|g| g.start >= outer.len()) {
        group_variables(s, plan, group, value, level, &mut symbols);
    }
    symbols
}

/// Symbols of one loop's variables: the carrying one has the counter's value and the others are 0.
fn group_variables<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    plan: &LoopPlan,
    group: &std::ops::Range<usize>,
    value: SymbolValue<'e, 'ctx>,
    level: usize,
    symbols: &mut Vec<SymbolId>,
) {
    let extents = plan.extents();
    let carrier = carrier(&extents, group);
    for v in group.clone() {
        // What depends on nothing but the others is computed once, outside of all loops.
        let zero = (SymbolValue::Uniform(s.number(0)), 0);
        let (value, level) = if carrier == Some(v) { (value, level) } else { zero };
        symbols.push(s.define(Symbol { extent: Some(extents[v]), level }, value));
    }
}
