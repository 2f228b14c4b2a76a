//! A kernel: a fusion (or one operation) as a function over a range of units of work.
//!
//! The function takes an array of pointers (operands, then results) and the first and the last-but-one unit. Units are
//! independent; a caller may run ranges of them on several threads.

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};
use xla_hlo::ops::{Op, Reduce};
use xla_hlo::{ArrayShape, CompId, Computation, Error, InstrId, Module, Result, ResultExt, Shape};

use super::address::compute_bits;
use super::fold::splits_into_lanes;
use super::index::{Coord, Index, Symbol, SymbolId};
use super::nest::Range;
use super::plan::{LoopPlan, carrier, trial_symbols};
use super::tiles::TileGrid;
use super::{FusedEmitter, Source, SymbolValue};
use crate::emitter::Emitter;
use crate::lanes::Lanes;

/// Rows (outermost iterations) below which one row is cut into several units.
const FEW_ROWS: u64 = 16;
/// Elements in a unit that is a piece of a row; a multiple of every lane count.
const PIECE: u64 = 4096;

/// Vector registers of accumulators in a fold across lanes, so that its steps overlap.
pub(super) const FOLDED_REGISTERS: u32 = 8;

/// What a kernel is made of.
#[derive(Clone, Debug)]
pub struct KernelSource<'m> {
    /// The module.
    pub module: &'m Module,
    /// Where the root is: a fusion's computation, or the computation of a lone operation.
    pub computation: CompId,
    /// The instruction whose value is stored; a tuple stores each element.
    pub root: InstrId,
    /// Instructions whose values are in memory, in the order of the pointers.
    pub inputs: Vec<InstrId>,
    /// Whether the result lies where operand 0 of a root dynamic-update-slice lies, so that only the box is written.
    pub in_place: bool,
}

/// What a caller must know to run a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// Independent units of work; run with `0..units` in all.
    pub units: u64,
    /// Rough cost of all units together, in elementary operations on one element.
    pub work: f64,
}

/// One stored result.
pub(super) struct Output {
    root: InstrId,
    /// Which value, for a fold of several arrays.
    value: usize,
    pub shape: ArrayShape,
}

/// Writes the kernel's function into the emitter's module.
///
/// The kernel of a scatter works in place: its results hold its inputs already. Its units are those of its
/// [`ScatterPlan`](super::ScatterPlan), each run of them a share of the windows that writes what no other share writes; each
/// call goes through the windows of its share in order, so that few calls are best: one a thread.
pub fn emit_kernel(emitter: &Emitter<'_>, source: &KernelSource<'_>, name: &str) -> Result<Kernel> {
    let graph = &source.module[source.computation];
    let context = || format!("%{} in {}", graph[source.root].name(), graph.name());
    match graph[source.root].op() {
        Op::Scatter(op) => super::scatter::emit(emitter, source, op, name).context(context),
        _ => Writer::new(source)?.emit(emitter, name).context(context),
    }
}

/// Writes one kernel.
pub(super) struct Writer<'a, 'm> {
    pub source: &'a KernelSource<'m>,
    pub outputs: Vec<Output>,
    /// Dimensions that loops run over.
    dims: Vec<usize>,
}

impl<'a, 'm> Writer<'a, 'm> {
    fn new(source: &'a KernelSource<'m>) -> Result<Self> {
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
        let function = kernel_function(emitter, name);
        let work = self.work();
        if self.dims.contains(&0) {
            finish(emitter)?;
            return Ok(Kernel { name: name.to_string(), units: 0, work });
        }
        if let Some(strands) = self.strands()? {
            let units = self.emit_strands(emitter, function, &strands)?;
            return Ok(Kernel { name: name.to_string(), units, work });
        }
        let plan = self.plan(emitter)?;
        let width = self.width(emitter, &plan);
        if let Some(across) = plan.across()
            && width > 1
            && !self.has_folds()
        {
            return self.emit_tiles(emitter, function, name, &plan, across, width);
        }
        let mut loops = plan.loops();
        // Row folds take scalar results one after the other; everything else takes lanes along the innermost loop.
        let inner = if width == 1 { 1 } else { loops.pop().unwrap_or(1) };
        let rows: u64 = loops.iter().product();
        let piece = self.piece(width);
        let pieces = if rows < FEW_ROWS { piece.map_or(1, |piece| inner.div_ceil(piece)) } else { 1 };
        let piece = piece.unwrap_or(inner);
        let units = rows * pieces;

        let mut fused = self.bind(emitter, function)?;
        let (begin, end) = (parameter(emitter, function, 1)?, parameter(emitter, function, 2)?);
        if rows == 1 && inner > 1 {
            // One row: its pieces are one loop over their elements.
            let (start, stop) = (begin * piece as i64, (end * piece as i64).smin(inner as i64));
            let range = match pieces {
                1 => fused.full_range(inner, width),
                _ => Range {
                    start,
                    end: stop,
                    extent: Some(inner),
                    width,
                    whole: inner.is_multiple_of(u64::from(width)),
                },
            };
            self.lanes_loop(&mut fused, &plan, &[], range)?;
        } else {
            let range = Range { start: begin, end, extent: Some(units), width: 1, whole: true };
            fused.for_each(range, Vec::new(), &mut |s, unit, _| {
                let unit = Coord::symbol(unit);
                let (row, number) = s.divide(&unit, pieces as i64)?;
                let counters = counters(s, &row, &loops)?;
                let outer = outer_variables(s, &plan, &counters)?;
                let range = match pieces {
                    1 => s.full_range(inner, width),
                    _ => piece_range(s, &number, piece, inner, width)?,
                };
                self.lanes_loop(s, &plan, &outer, range)?;
                Ok(Vec::new())
            })?;
        }
        finish(emitter)?;
        Ok(Kernel { name: name.to_string(), units, work })
    }

    /// A unit is a tile of two loops.
    fn emit_tiles<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        function: FunctionValue<'ctx>,
        name: &str,
        plan: &LoopPlan,
        across: usize,
        width: u32,
    ) -> Result<Kernel> {
        let grid = TileGrid::new(plan, across, self.widest_bits(), width);
        let mut fused = self.bind(emitter, function)?;
        let (begin, end) = (parameter(emitter, function, 1)?, parameter(emitter, function, 2)?);
        let range = Range { start: begin, end, extent: Some(grid.units()), width: 1, whole: true };
        fused.for_each(range, Vec::new(), &mut |s, unit, _| {
            let counters = counters(s, &Coord::symbol(unit), grid.loops())?;
            s.tile(plan, &grid, counters, width, &mut |s, counters, range| {
                let outer = outer_variables(s, plan, counters)?;
                self.lanes_loop(s, plan, &outer, range)
            })?;
            Ok(Vec::new())
        })?;
        finish(emitter)?;
        Ok(Kernel { name: name.to_string(), units: grid.units(), work: self.work() })
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
    fn store_all<'e, 'ctx>(&self, fused: &mut FusedEmitter<'e, 'ctx, 'm>, index: &Index) -> Result<()> {
        let first = self.source.inputs.len();
        let pointer = |fused: &FusedEmitter<'e, 'ctx, 'm>, number: usize| fused.pointers[first + number];
        if self.source.in_place {
            let root = self.source.root;
            let (operand, update) = (self.graph()[root].operand(0), self.graph()[root].operand(1));
            let starts = fused.starts(root, 2, operand, &self.dims)?;
            let value = fused.element(update, index)?;
            let at: Index = index.iter().zip(&starts).map(|(c, s)| c.clone().plus(s)).collect();
            let target = Source { base: pointer(fused, 0), shape: self.outputs[0].shape.clone() };
            return fused.store(&target, &at, value);
        }
        let rows = fused.row_count();
        fused.begin_row(index.get(..rows).unwrap_or(&[]));
        let mut values = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            let index: Index = index[..output.shape.rank()].to_vec();
            let value = fused.elements(output.root, &index)?.get(output.value).copied();
            values.push((index, value.ok_or_else(|| Error::internal("a result that is not there"))?));
        }
        for (number, (index, value)) in values.into_iter().enumerate() {
            let target = Source { base: pointer(fused, number), shape: self.outputs[number].shape.clone() };
            let level = fused.level(&index);
            fused.at_level(level, |s| s.store(&target, &index, value))?;
        }
        Ok(())
    }

    /// Emits the kernel once for one element into a module that is thrown away, to see what it reads and where.
    fn plan(&self, emitter: &Emitter<'_>) -> Result<LoopPlan> {
        let mut plan = LoopPlan::new(&self.dims);
        loop {
            let context = Context::create();
            let trial = Emitter::new(&context, "trial", emitter.target(), emitter.options());
            let function = kernel_function(&trial, "trial");
            let mut fused = self.bind(&trial, function)?;
            let symbols = trial_symbols(&plan, &mut fused.symbols);
            // Any number that is not known, so that no loop is seen to be empty.
            let value = SymbolValue::Uniform(parameter(&trial, function, 1)?);
            fused.symbol_values = vec![value; symbols.len()];
            self.store_all(&mut fused, &plan.index(&symbols))?;
            let survey = std::mem::take(&mut fused.survey);
            match plan.split(&survey, &symbols) {
                Some(split) => plan = split,
                None => return Ok(plan.merged(&survey, &symbols, fused.row_count())),
            }
        }
    }

    /// A new emitter in the function's entry, with operands bound to its pointers.
    pub fn bind<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        function: FunctionValue<'ctx>,
    ) -> Result<FusedEmitter<'e, 'ctx, 'm>> {
        let mut fused = FusedEmitter::new(emitter, self.source.module, self.source.computation)?;
        let count = self.source.inputs.len() + self.outputs.len();
        fused.pointers = pointers(emitter, function, count)?;
        for (number, &input) in self.source.inputs.iter().enumerate() {
            let shape = self.graph()[input].shape().expect_array()?.clone();
            fused.sources.insert(input, Source { base: fused.pointers[number], shape });
        }
        let results: Vec<InstrId> = self.outputs.iter().map(|o| o.root).collect();
        fused.plan_rows(&self.dims, &results);
        Ok(fused)
    }

    /// Instructions that the kernel computes.
    fn computed(&self) -> Vec<InstrId> {
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

    fn has_folds(&self) -> bool {
        let fold = |id: &InstrId| matches!(self.graph()[*id].op(), Op::Reduce(_) | Op::Dot(_));
        self.computed().iter().any(fold)
    }

    /// Lanes of the innermost loop; 1 where a scalar result is folded along lanes.
    fn width(&self, emitter: &Emitter<'_>, plan: &LoopPlan) -> u32 {
        let inner = plan.loops().last().copied().unwrap_or(1);
        let computed = self.computed();
        let folds = |direction| computed.iter().any(|&id| self.folds_into_loop(id) == Some(direction));
        if inner == 1 || folds(FoldDirection::AlongRows) {
            return 1;
        }
        let lanes = emitter.target().lanes(self.widest_bits());
        let lanes = if folds(FoldDirection::Across) { lanes * FOLDED_REGISTERS } else { lanes };
        fitting(lanes, inner)
    }

    /// Elements of a unit that is a piece of a row, where rows can be cut: nothing may be folded again for each piece.
    fn piece(&self, width: u32) -> Option<u64> {
        let is_fold = |id: &InstrId| matches!(self.graph()[*id].op(), Op::Reduce(_) | Op::Dot(_));
        let folds: Vec<InstrId> = self.computed().into_iter().filter(is_fold).collect();
        match &folds[..] {
            [] => Some(PIECE),
            _ if width > 1 && folds.iter().all(|&id| self.folds_into_loop(id).is_some()) => Some(width.into()),
            _ => None,
        }
    }

    /// Bits of the widest lane that is computed with.
    pub fn widest_bits(&self) -> u32 {
        let computed = self.computed();
        let all = computed.iter().chain(&self.source.inputs);
        all.filter_map(|&id| widest(self.graph()[id].shape())).max().unwrap_or(32)
    }

    /// How a fold whose results the innermost loop runs over (not one of a whole row of it) folds.
    fn folds_into_loop(&self, id: InstrId) -> Option<FoldDirection> {
        let shape = self.graph()[id].shape();
        let leaves = shape.leaves();
        let dims = leaves.first().and_then(|(_, s)| s.as_array()).map(ArrayShape::dims)?;
        let elements = |dims: &[usize]| dims.iter().product::<usize>();
        if elements(dims) < elements(&self.dims) { None } else { self.fold_of(id) }
    }

    /// How a root folds: along the innermost dimension of its operand, or across it.
    fn fold_of(&self, root: InstrId) -> Option<FoldDirection> {
        let instruction = &self.graph()[root];
        let along = match instruction.op() {
            Op::Reduce(op @ Reduce { dimensions, .. }) => {
                let shape = self.graph()[instruction.operand(0)].shape().as_array()?;
                let innermost = (0..shape.rank()).rev().find(|&d| shape.dims()[d] > 1)?;
                let ty = instruction.shape().as_array().map(ArrayShape::element_type);
                if ty.and_then(|ty| splits_into_lanes(self.source.module, op, ty)).is_none() {
                    return Some(FoldDirection::SideBySide);
                }
                dimensions.contains(&innermost)
            }
            Op::Dot(dot) => {
                let rhs = self.graph()[instruction.operand(1)].shape().as_array()?;
                dot.dims.rhs_contracting.contains(&rhs.rank().saturating_sub(1))
            }
            _ => return None,
        };
        Some(if along { FoldDirection::AlongRows } else { FoldDirection::Across })
    }

    /// Elementary operations in all, roughly.
    fn work(&self) -> f64 {
        self.computed().into_iter().map(|id| super::support::work(self.source.module, self.graph(), id)).sum()
    }
}

/// So many lanes, or fewer where a loop is shorter.
pub(super) fn fitting(mut lanes: u32, extent: u64) -> u32 {
    while lanes > 1 && u64::from(lanes) >= 2 * extent {
        lanes /= 2;
    }
    lanes
}

#[derive(Clone, Copy, PartialEq)]
enum FoldDirection {
    /// Neighbours in one fold are lanes.
    AlongRows,
    /// Neighbouring folds are lanes, and their elements neighbours in memory.
    Across,
    /// Neighbouring folds are lanes, wherever their elements are: the fold must go in order.
    SideBySide,
}

fn widest(shape: &Shape) -> Option<u32> {
    shape.leaves().iter().filter_map(|(_, s)| s.element_type()).map(compute_bits).max()
}

/// Counters of the outer loops from the number of a row.
pub(super) fn counters(s: &mut FusedEmitter<'_, '_, '_>, row: &Coord, loops: &[u64]) -> Result<Vec<Coord>> {
    let mut rest = row.clone();
    let mut counters = vec![Coord::default(); loops.len()];
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
    number: &Coord,
    piece: u64,
    inner: u64,
    width: u32,
) -> Result<Range<'e, 'ctx>> {
    let number = s.number_of(&number.clone().scaled(piece as i64))?;
    let start = s.lanes_of(number);
    let end = (start + piece as i64).smin(inner as i64);
    Ok(Range { start, end, extent: Some(inner), width, whole: inner.is_multiple_of(u64::from(width)) })
}

/// Symbols of the variables of the outer loops, whose counters are given.
fn outer_variables(s: &mut FusedEmitter<'_, '_, '_>, plan: &LoopPlan, counters: &[Coord]) -> Result<Vec<SymbolId>> {
    let mut symbols = Vec::new();
    for (counter, group) in counters.iter().zip(plan.groups()) {
        let known = s.number_of(counter)?;
        let value = SymbolValue::Uniform(s.lanes_of(known));
        group_variables(s, plan, group, value, counter.level(&s.symbols), &mut symbols);
    }
    Ok(symbols)
}

/// Symbols of all variables: the outer ones, and those of the innermost loop with its counter (0 where there is none).
fn all_variables(
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

/// `void name(ptr pointers, i64 begin, i64 end)`, positioned in its entry.
pub(super) fn kernel_function<'ctx>(emitter: &Emitter<'ctx>, name: &str) -> FunctionValue<'ctx> {
    let context = emitter.context();
    let pointer = context.ptr_type(AddressSpace::default());
    let long = context.i64_type();
    let ty = context.void_type().fn_type(&[pointer.into(), long.into(), long.into()], false);
    let function = emitter.module().add_function(name, ty, None);
    emitter.decorate(function);
    emitter.builder().position_at_end(context.append_basic_block(function, "entry"));
    function
}

pub(super) fn finish(emitter: &Emitter<'_>) -> Result<()> {
    emitter.builder().build_return(None).map_err(|e| Error::internal(format!("LLVM refuses a return: {e}")))?;
    emitter.check()
}

pub(super) fn parameter<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    function: FunctionValue<'ctx>,
    number: u32,
) -> Result<Lanes<'e, 'ctx>> {
    let value = function.get_nth_param(number).ok_or_else(|| Error::internal("a kernel lacks a parameter"))?;
    Ok(emitter.lanes(value))
}

pub(super) fn pointers<'ctx>(
    emitter: &Emitter<'ctx>,
    function: FunctionValue<'ctx>,
    count: usize,
) -> Result<Vec<PointerValue<'ctx>>> {
    let Some(BasicValueEnum::PointerValue(array)) = function.get_nth_param(0) else {
        return Err(Error::internal("a kernel lacks its pointers"));
    };
    (0..count).map(|i| emitter.load_pointer(array, i)).collect()
}
