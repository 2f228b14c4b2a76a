//! Merge sort by many threads: blocks sort runs in shared memory, then launches merge pairs of runs in global memory.
//!
//! Merging needs no communication between threads. An element's position in the merged run is its position in its own
//! run plus the number of elements of the other run that come before it, which a binary search with the comparator
//! finds. An element of the left run comes after all elements of the right run that precede it. An element of the right
//! run comes after all elements of the left run that it does not precede. Sorting is therefore stable. The searches
//! agree if the comparator is a strict weak order. A comparator that only compares floats is made one by sorting NaN
//! last. Any other comparator that is not a strict weak order may lose elements, because others overwrite them.

use inkwell::values::PointerValue;
use xla_hlo::ops::{CompareDirection, CompareType, Op};
use xla_hlo::{CompId, ElementKind, ElementType, Error, InstrId, Module, Result, Scalar as Element};

use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::WorkItems;
use crate::fused::simt::scatter::means::passed;
use crate::fused::source::KernelSource;
use crate::fused::support::is_scalar_computation;
use crate::fused::tuning::sort::{LEAST_THREADS, PER_THREAD, SHARED_BYTES, TILE};
use crate::lanes::Lanes;
use crate::simt::Register;
use crate::target::Target;
use xla_passes::analysis::element_order::compared;

/// Upper bound of the number of elements for positions of 32 bits; twice a position must fit into 32 bits as well.
const NARROW: u64 = 1 << 30;

/// Plan of a sort of arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPlan {
    /// Comparator; `None` sorts one array of unsigned integers in ascending order.
    comparator: Option<CompId>,
    types: Vec<ElementType>,
    /// Number of elements per row.
    length: u64,
    /// Stride between the elements of a row.
    inner: u64,
    /// Number of elements per array.
    count: u64,
    /// Number of elements that a block sorts, a power of two.
    tile: u64,
}

/// Launch of a sort. The words are addresses of the arrays to read, then of the arrays to write, then numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortPhase {
    /// Sorts runs of each row in shared memory. It takes no numbers.
    Runs,
    /// Merges pairs of adjacent runs. It takes one number, the length of a run, a power of two.
    Merge,
}

impl KernelPlan for SortPlan {
    type Phase = SortPhase;

    const NAME: &'static str = "merge-sort";
    const READS_SOURCE: bool = false;

    /// Returns the plan of a `sort`. `None` if the comparator does not compute scalars, if sizes are dynamic, or if
    /// there are too many arrays for shared memory.
    fn new(source: &KernelSource<'_>, _: &Target) -> Option<SortPlan> {
        let Op::Sort(sort) = source.instruction().op() else { return None };
        let arrays = source.input_shapes()?;
        let first = arrays.first().filter(|first| first.is_static())?;
        let types: Vec<ElementType> = arrays.iter().map(|array| array.element_type()).collect();
        let dims = first.dims();
        let length = *dims.get(sort.dimension)? as u64;
        let inner = dims[sort.dimension + 1..].iter().map(|&d| d as u64).product();
        let count = first.element_count() as u64;
        let fits = is_scalar_computation(source.module, sort.computation);
        SortPlan::of(Some(sort.computation), types, [length, inner, count]).filter(|_| fits)
    }

    fn phases(&self) -> Vec<SortPhase> {
        match self.merges().next() {
            Some(_) => vec![SortPhase::Runs, SortPhase::Merge],
            None => vec![SortPhase::Runs],
        }
    }

    fn commands(&self, _: &KernelSource<'_>) -> Vec<PlanCommand<SortPhase>> {
        let count = self.types.len();
        let arguments = |argument: fn(usize) -> PlanArgument, from: usize| {
            (from..from + count).map(argument).collect::<Vec<PlanArgument>>()
        };
        let operands = arguments(PlanArgument::Array, 0);
        let results = arguments(PlanArgument::Array, count);
        let scratch = arguments(PlanArgument::Scratch, 0);
        self.launches([&operands, &results, &scratch])
    }

    fn scratch_bytes(&self) -> Vec<usize> {
        if self.merges().next().is_none() { Vec::new() } else { self.array_bytes().collect() }
    }

    fn describe(&self, phase: SortPhase) -> String {
        format!("sort {phase:?}")
    }

    fn emit(&self, source: &KernelSource<'_>, phase: SortPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let module = source.module;
        let frame = emitter.simt_kernel(name, 2 * self.types.len(), phase.numbers())?;
        let mut fused = FusedEmitter::new(emitter, module, self.comparator.unwrap_or(module.entry_id()))?;
        let (from, to) = frame.pointers.split_at(self.types.len());
        let keys = self.comparator.map_or(vec![true], |comparator| compared(module, comparator, self.types.len()));
        let nan_last = self.comparator.and_then(|comparator| unordered(module, comparator, &self.types));
        let sorter = Sorter { plan: self, keys, nan_last };
        let (work_items, block) = match (phase, &frame.numbers[..]) {
            _ if self.count == 0 => (0, None),
            (SortPhase::Runs, []) => {
                let (blocks, threads) = sorter.runs(&mut fused, [from, to])?;
                (blocks, Some(threads))
            }
            (SortPhase::Merge, [run]) => {
                sorter.merge(&mut fused, [from, to], emitter.lanes(*run))?;
                (self.count, None)
            }
            _ => return Err(Error::internal(format!("kernel {name} of sort {phase:?} has unexpected numbers"))),
        };
        Kernel::end(emitter, name, Launch { work_items, block }, self.describe(phase))
    }
}

impl SortPlan {
    /// Returns the plan for `count` unsigned integers in ascending order.
    pub(crate) fn ascending(ty: ElementType, count: u64) -> Option<SortPlan> {
        SortPlan::of(None, vec![ty], [count, 1, count])
    }

    fn of(comparator: Option<CompId>, types: Vec<ElementType>, [length, inner, count]: [u64; 3]) -> Option<SortPlan> {
        let bytes: u64 = types.iter().map(|ty| ty.byte_width() as u64).sum();
        let mut tile = TILE.min(count.next_power_of_two());
        // Shared memory is double-buffered: every element exists twice.
        while tile > LEAST_THREADS && 2 * bytes * tile > SHARED_BYTES {
            tile /= 2;
        }
        let tile = tile.max(LEAST_THREADS);
        (2 * bytes * tile <= SHARED_BYTES).then_some(SortPlan { comparator, types, length, inner, count, tile })
    }

    /// Returns the length of the runs that blocks sort.
    fn run(&self) -> u64 {
        self.length.next_power_of_two().min(self.tile)
    }

    /// Returns the lengths of the runs that the merge launches read, in sequence.
    pub(crate) fn merges(&self) -> impl Iterator<Item = u64> {
        let length = self.length;
        std::iter::successors(Some(self.run()), |run| run.checked_mul(2)).take_while(move |&run| run < length)
    }

    /// Converts a 64-bit number to the type of positions.
    fn narrowed<'e, 'ctx>(&self, number: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        if self.count < NARROW { number.trunc(32) } else { number }
    }

    /// Converts a 32-bit number to the type of positions.
    fn widened<'e, 'ctx>(&self, number: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        if self.count < NARROW { number } else { number.zext(64) }
    }

    /// Returns the size in bytes of each array.
    pub(crate) fn array_bytes(&self) -> impl Iterator<Item = usize> {
        self.types.iter().map(|ty| self.count as usize * ty.byte_width())
    }

    /// Returns the launches that sort `operands` into `results`; merges use `scratch` as second buffer. `operands` may
    /// be the buffer that the first launch does not write.
    pub(crate) fn launches(&self, [operands, results, scratch]: [&[PlanArgument]; 3]) -> Vec<PlanCommand<SortPhase>> {
        let merges: Vec<u64> = self.merges().collect();
        // The last launch writes the results.
        let side = |launches_left: usize| if launches_left.is_multiple_of(2) { results } else { scratch };
        let launch = |phase, from: &[PlanArgument], to: &[PlanArgument], run: Option<u64>| {
            let run = run.map(|run| PlanArgument::Number(run as i64));
            PlanCommand::launch(phase, from.iter().chain(to).copied().chain(run))
        };
        let mut commands = vec![launch(SortPhase::Runs, operands, side(merges.len()), None)];
        for (done, &run) in merges.iter().enumerate() {
            let left = merges.len() - done;
            commands.push(launch(SortPhase::Merge, side(left), side(left - 1), Some(run)));
        }
        commands
    }
}

impl SortPhase {
    fn numbers(self) -> usize {
        match self {
            SortPhase::Runs => 0,
            SortPhase::Merge => 1,
        }
    }
}

/// Returns the array of floats that a comparator compares, if it does nothing more and NaN are unordered.
fn unordered(module: &Module, comparator: CompId, types: &[ElementType]) -> Option<usize> {
    let graph = &module[comparator];
    let root = &graph[graph.root()];
    let (Op::Compare(compare), &[x, y]) = (root.op(), root.operands()) else { return None };
    let parameter = |id: InstrId| match graph[passed(graph, id)].op() {
        Op::Parameter(parameter) => Some(parameter.number),
        _ => None,
    };
    let (x, y) = (parameter(x)?, parameter(y)?);
    let orders = !matches!(compare.direction, CompareDirection::Eq | CompareDirection::Ne);
    let ty = *types.get(x / 2)?;
    let is_float = ty.kind() == ElementKind::Float && compare.order_for(ty) == CompareType::Float;
    (orders && is_float && x != y && x / 2 == y / 2).then_some(x / 2)
}

/// Emitter of a kernel of a sort.
struct Sorter<'a> {
    plan: &'a SortPlan,
    /// Whether the comparator reads each array.
    keys: Vec<bool>,
    /// Array whose NaN are sorted last, regardless of the comparator.
    nan_last: Option<usize>,
}

/// Layout of a block's elements. A slot is an index in shared memory.
struct Tile {
    /// Number of threads per block.
    threads: u64,
    /// Number of elements per run, a power of two.
    run: u64,
    /// Number of runs per block, a power of two; more than one only if a run is a whole row.
    runs: u64,
    /// Number of rows of the arrays.
    rows: u64,
    /// Total number of runs.
    count: u64,
    /// Slots between consecutive elements of a run, chosen so that adjacent threads read adjacent elements
    /// (coalescing).
    step: u64,
}

impl Tile {
    fn new(plan: &SortPlan) -> Tile {
        let run = plan.run();
        let (runs, rows) = (plan.tile / run, plan.count / plan.length.max(1));
        Tile {
            threads: (plan.tile / PER_THREAD).max(LEAST_THREADS),
            run,
            runs,
            rows,
            count: rows * plan.length.div_ceil(run),
            step: if plan.inner == 1 { 1 } else { runs },
        }
    }

    /// Returns the run of a block's slot, and the position in the run.
    fn split<'e, 'ctx>(&self, block: Lanes<'e, 'ctx>, slot: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 2] {
        let (by, mask) = if self.step == 1 { (self.run, self.run - 1) } else { (self.runs, self.runs - 1) };
        let (high, low) = (slot.lshr(i64::from(by.ilog2())), slot & mask as i64);
        let (run, place) = if self.step == 1 { (high, low) } else { (low, high) };
        [block * self.runs as i64 + run, place]
    }

    /// Returns a slot's position in its run, and the end of that run: 0 for a run that does not exist.
    fn place<'e, 'ctx>(&self, plan: &SortPlan, block: Lanes<'e, 'ctx>, slot: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 2] {
        let [run, place] = self.split(block, slot);
        let begin = run.udiv(self.rows as i64) * self.run as i64;
        let limit = (-begin + plan.length as i64).smin(self.run as i64);
        [place, run.ult(self.count as i64).select(limit, limit.int(0))]
    }

    /// Returns the index in the arrays of a slot's element.
    fn address<'e, 'ctx>(&self, plan: &SortPlan, block: Lanes<'e, 'ctx>, slot: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let [run, place] = self.split(block, slot);
        let chunk = run.udiv(self.rows as i64);
        let row = run - chunk * self.rows as i64;
        let outer = row.udiv(plan.inner as i64);
        let first = outer * (plan.length - 1) as i64 * plan.inner as i64 + row;
        first + (chunk * self.run as i64 + place) * plan.inner as i64
    }

    /// Emits `body` for each slot of a thread: a block-stride loop.
    fn each_slot<'e, 'ctx, 'm>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        plan: &SortPlan,
        thread: Lanes<'e, 'ctx>,
        body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, Lanes<'e, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        let turns = s.full_range(plan.tile.div_ceil(self.threads), 1);
        s.for_each(turns, Vec::new(), &mut |s, turn, _| {
            let number = s.number_of(&AffineExpr::symbol(turn))?;
            let turn = plan.narrowed(s.lanes_of(number));
            body(s, turn * self.threads as i64 + thread).map(|()| Vec::new())
        })?;
        Ok(())
    }
}

/// Pair of runs that an element is merged from. Positions are relative to the beginning of the row or of the tile's
/// run.
struct Pair<'e, 'ctx> {
    /// Position of the element.
    place: Lanes<'e, 'ctx>,
    /// Whether the element is in the left run.
    is_left: Lanes<'e, 'ctx>,
    /// Range of the other run: first position, and end.
    other: [Lanes<'e, 'ctx>; 2],
    /// First position of the merged run plus the element's position in its own run.
    own: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Pair<'e, 'ctx> {
    /// Returns the pair of runs of length `run` that contains a position; there are no elements from `limit` on.
    fn new(place: Lanes<'e, 'ctx>, run: Lanes<'e, 'ctx>, limit: Lanes<'e, 'ctx>) -> Self {
        let is_left = (place & run).eq(0);
        let begin = place & -(run + run);
        let low = (begin + is_left.select(run, run.int(0))).smin(limit);
        Pair { place, is_left, other: [low, (low + run).smin(limit)], own: place & !run }
    }

    /// Returns the distance that the element moves, if `bound` is the end of the other run's elements that come before
    /// it.
    fn move_to(&self, bound: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        self.own + (bound - self.other[0]) - self.place
    }
}

impl Sorter<'_> {
    /// Merges runs of `run` elements of all rows, with one thread per element in the order of memory.
    fn merge<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        [from, to]: [&[PointerValue<'ctx>]; 2],
        run: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let plan = self.plan;
        let inner = plan.inner as i64;
        let run = plan.narrowed(run);
        s.for_work_items(WorkItems::Thread, plan.count, &mut |s, item| {
            let number = s.number_of(&AffineExpr::symbol(item))?;
            let at = plan.narrowed(s.lanes_of(number));
            let place = at.udiv(inner).urem(plan.length as i64);
            let row = at - place * inner;
            let pair = Pair::new(place, run, place.int(plan.length as i64));
            let element = self.load(s, from, at);
            let bound = self.bound(s, &pair, &element, from, |place| row + place * inner);
            self.store(s, &element, to, at + pair.move_to(bound) * inner);
            Ok(())
        })
    }

    /// Sorts runs in shared memory. Returns the number of blocks and the threads of each.
    fn runs<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        [from, to]: [&[PointerValue<'ctx>]; 2],
    ) -> Result<(u64, u32)> {
        let plan = self.plan;
        let emitter = s.emitter;
        let tile = Tile::new(plan);
        let shared = plan.types.iter().map(|&ty| {
            let parts = if ty.is_complex() { 2 } else { 1 };
            emitter.shared_array(stored_scalar(ty), 2 * parts * plan.tile)
        });
        let shared = shared.collect::<Result<Vec<_>>>()?;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let (block, thread) = (plan.widened(block?), plan.widened(thread?));
        let step = tile.step as i64;
        let levels = s.full_range(tile.run.ilog2().into(), 1);
        let start = [thread.int(1), thread.int(0)];

        self.each_element(s, &tile, [block, thread], &mut |s, slot, _, _| {
            let element = self.load(s, from, tile.address(plan, block, slot));
            self.store(s, &element, &shared, slot);
        })?;
        emitter.barrier()?;
        // Double buffering: each level reads one half of shared memory and writes the other one.
        let last = s.for_each(levels, start.map(Lanes::raw).to_vec(), &mut |s, _, carried| {
            let &[run, here] = carried else {
                return Err(Error::internal(format!("loop carries {} values instead of 2", carried.len())));
            };
            let (run, here) = (emitter.lanes(run), emitter.lanes(here));
            let there = -here + plan.tile as i64;
            self.each_element(s, &tile, [block, thread], &mut |s, slot, place, limit| {
                let pair = Pair::new(place, run, limit);
                let element = self.load(s, &shared, here + slot);
                let first = here + slot - place * step;
                let bound = self.bound(s, &pair, &element, &shared, |place| first + place * step);
                self.store(s, &element, &shared, there + slot + pair.move_to(bound) * step);
            })?;
            emitter.barrier()?;
            Ok(vec![(run + run).raw(), there.raw()])
        })?;
        let here = last.last().map_or(start[1], |&here| emitter.lanes(here));
        self.each_element(s, &tile, [block, thread], &mut |s, slot, _, _| {
            let element = self.load(s, &shared, here + slot);
            self.store(s, &element, to, tile.address(plan, block, slot));
        })?;
        Ok((tile.count.div_ceil(tile.runs), tile.threads as u32))
    }

    /// Emits `body` for each slot of a thread that has an element, with the element's position in its run and the end
    /// of that run.
    fn each_element<'e, 'ctx, 'm>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile,
        [block, thread]: [Lanes<'e, 'ctx>; 2],
        body: &mut dyn FnMut(&FusedEmitter<'e, 'ctx, 'm>, Lanes<'e, 'ctx>, Lanes<'e, 'ctx>, Lanes<'e, 'ctx>),
    ) -> Result<()> {
        tile.each_slot(s, self.plan, thread, &mut |s, slot| {
            let [place, limit] = tile.place(self.plan, block, slot);
            let is_there = place.lt(limit) & slot.lt(self.plan.tile as i64);
            s.when(is_there, &[], |s| {
                body(s, slot, place, limit);
                Ok(Vec::new())
            })?;
            Ok(())
        })
    }

    /// Returns the position in the other run of the first element that does not come before the given one, by binary
    /// search. `address` maps a position to an index in the arrays.
    fn bound<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        pair: &Pair<'e, 'ctx>,
        element: &[Value<'e, 'ctx>],
        arrays: &[PointerValue<'ctx>],
        address: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
    ) -> Lanes<'e, 'ctx> {
        let emitter = s.emitter;
        let body = |[low, high]: [Lanes<'e, 'ctx>; 2]| {
            let middle = low + (high - low).lshr(1);
            let at = address(middle);
            let mut arguments = Vec::with_capacity(2 * element.len());
            for (i, &ty) in self.plan.types.iter().enumerate() {
                if self.keys[i] {
                    let other = elemental::load(emitter, arrays[i], at, ty, 1, None);
                    arguments.push(elemental::select_lanes(pair.is_left, other, element[i]));
                    arguments.push(elemental::select_lanes(pair.is_left, element[i], other));
                } else {
                    arguments.extend([elemental::constant(emitter, ty, Element::zero(ty)); 2]);
                }
            }
            match self.comes_before(s, &arguments) {
                Ok(before) => {
                    let before = self.nan_last.map_or(before, |key| {
                        let [a, b] = [2 * key, 2 * key + 1].map(|number| arguments[number].lanes().is_nan());
                        before | (b & !a)
                    });
                    let goes_on = before.eq(pair.is_left);
                    [goes_on.select(middle + 1, low), goes_on.select(high, middle)]
                }
                Err(error) => {
                    emitter.fail(error);
                    [low, high]
                }
            }
        };
        let [bound, _] = emitter.repeat_while(pair.other, |[low, high]| low.lt(high), body);
        bound
    }

    /// Compares the first element of each pair with the second, and returns whether it comes before.
    fn comes_before<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        arguments: &[Value<'e, 'ctx>],
    ) -> Result<Lanes<'e, 'ctx>> {
        let Some(comparator) = self.plan.comparator else {
            return Ok(arguments[0].lanes().ult(arguments[1].lanes()));
        };
        let before = s.call(comparator, arguments)?;
        Ok(before.first().ok_or_else(|| Error::internal("comparator of a sort has no result"))?.lanes())
    }

    fn load<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        arrays: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
    ) -> Vec<Value<'e, 'ctx>> {
        let loads = arrays.iter().zip(&self.plan.types);
        loads.map(|(&array, &ty)| elemental::load(s.emitter, array, at, ty, 1, None)).collect()
    }

    fn store<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        element: &[Value<'e, 'ctx>],
        arrays: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
    ) {
        for (&value, &array) in element.iter().zip(arrays) {
            elemental::store(s.emitter, value, array, at, None);
        }
    }
}
