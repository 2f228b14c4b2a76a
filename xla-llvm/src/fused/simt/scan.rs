//! Scans by blocks of threads: running totals of whole fibers, or of chunks of them where there are few and long ones.
//!
//! A block goes along its chunk in turns. In each, a thread scans a few neighbouring elements, the totals of a warp's
//! threads are scanned by shuffles, those of warps through shared memory, and the totals of earlier elements are added.
//! Chunks of one fiber need to know the totals of those before: an earlier launch stores them, and each block adds up
//! the ones that it needs.

use inkwell::values::PointerValue;
use xla_hlo::ops::{BinaryOp, Cumulative, Op, combiner_identity, simple_combiner};
use xla_hlo::{ElementType, Error, InstrId, Result, ResultExt};

use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::core::address::compute_bits;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::loops::affine::{AffineExpr, Index, Symbol};
use crate::fused::loops::frame::WorkItems;
use crate::fused::loops::variables::counters;
use crate::fused::source::KernelSource;
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::scan::{LEAST_CHUNK, LEAST_FIBER, MANY_FIBERS};
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::fused::value::{Source, SymbolValue};
use crate::lanes::Lanes;
use crate::simt::{Register, Shuffle, WARP};
use crate::target::Target;

/// Threads of the largest and the smallest block.
const THREADS: [u64; 2] = [64, 256];

/// Plan of a scan by blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    combiner: BinaryOp,
    ty: ElementType,
    /// The dimension that is scanned.
    dimension: usize,
    from_end: bool,
    /// Sizes of the array.
    dims: Vec<usize>,
    /// Threads of a block.
    threads: u64,
    /// Neighbouring elements of a thread.
    width: u64,
    /// Elements of a chunk, and chunks of a fiber.
    chunk: u64,
    chunks: u64,
}

/// Phase of a launch of a scan. The words of each: addresses of the source's inputs, then of the totals or the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanPhase {
    /// Stores the total of each chunk.
    Totals,
    /// Stores the running totals; the last word is the address of the chunks' totals, if there is more than one chunk.
    Scan,
}

impl ScanPlan {
    /// The plan for a kernel whose root is a scan. `None` for others, and where each thread had better scan fibers of
    /// its own.
    pub fn new(source: &KernelSource<'_>, target: &Target) -> Option<ScanPlan> {
        let graph = &source.module[source.computation];
        let root = &graph[source.root];
        let Op::ReduceWindow(op) = root.op() else { return None };
        let combiner = simple_combiner(&source.module[op.computation])?;
        let array = root.shape().as_array()?;
        let dims = array.dims().to_vec();
        let ty = array.element_type();
        combiner_identity(combiner, ty)?;
        let Cumulative { dimension, from_end, .. } = op.window.cumulative(&dims)?;
        let size = dims[dimension] as u64;
        let elements = array.element_count() as u64;
        let fibers = elements.checked_div(size)?;
        let innermost = dims[dimension + 1..].iter().all(|&d| d == 1);
        if size < LEAST_FIBER || fibers == 0 || (!innermost && fibers >= MANY_FIBERS) {
            return None;
        }
        let mut width = u64::from(ACCESS_BITS / compute_bits(ty).clamp(32, ACCESS_BITS));
        while width > 1 && !(innermost && size.is_multiple_of(width)) {
            width /= 2;
        }
        let threads = (size / width).next_power_of_two().clamp(THREADS[0], THREADS[1]);
        let tile = threads * width;
        let wanted = busy_blocks(target).div_ceil(fibers).min(size.div_ceil(LEAST_CHUNK));
        let chunk = size.div_ceil(wanted).next_multiple_of(tile);
        let chunks = size.div_ceil(chunk);
        Some(ScanPlan { combiner, ty, dimension, from_end, dims, threads, width, chunk, chunks })
    }

    /// The launches.
    pub fn phases(&self) -> &'static [ScanPhase] {
        if self.chunks > 1 { &[ScanPhase::Totals, ScanPhase::Scan] } else { &[ScanPhase::Scan] }
    }

    /// Bytes of the chunks' totals, if there is more than one chunk.
    pub fn total_bytes(&self) -> Option<usize> {
        (self.chunks > 1).then(|| self.blocks() as usize * self.ty.byte_width())
    }

    /// Number of 64-bit words that a kernel takes.
    pub fn words(&self, phase: ScanPhase, source: &KernelSource<'_>) -> usize {
        match phase {
            ScanPhase::Totals => source.inputs.len() + 1,
            ScanPhase::Scan => source.inputs.len() + 1 + usize::from(self.chunks > 1),
        }
    }

    fn size(&self) -> u64 {
        self.dims[self.dimension] as u64
    }

    fn blocks(&self) -> u64 {
        self.dims.iter().map(|&d| d as u64).product::<u64>() / self.size() * self.chunks
    }

    /// Writes the function of a launch into the emitter's module, which is for a target with threads.
    pub fn emit(
        &self,
        source: &KernelSource<'_>,
        phase: ScanPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let graph = &source.module[source.computation];
        let context = || format!("%{} in {}", graph[source.root].name(), graph.name());
        self.emit_part(source, phase, emitter, name).context(context)
    }

    fn emit_part(
        &self,
        source: &KernelSource<'_>,
        phase: ScanPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let frame = emitter.simt_kernel(name, self.words(phase, source), 0)?;
        let outputs = frame.pointers[source.inputs.len()..].to_vec();
        let mut fused = FusedKernel::new(source)?.bind(emitter, frame.pointers)?;
        let independent: Vec<usize> = (0..self.dims.len()).filter(|&d| d != self.dimension).collect();
        let loops: Vec<u64> = independent.iter().map(|&d| self.dims[d] as u64).collect();
        let group = WorkItems::Group { threads: self.threads as u32 };
        fused.for_work_items(group, self.blocks(), &mut |s, item| {
            let (fiber, chunk) = s.divide(&AffineExpr::symbol(item), self.chunks as i64)?;
            let mut index = vec![AffineExpr::default(); self.dims.len()];
            for (&d, counter) in independent.iter().zip(counters(s, &fiber, &loops)?) {
                index[d] = counter;
            }
            let fiber = Fiber { plan: self, root: source.root, index, item: AffineExpr::symbol(item), chunk };
            match (phase, &outputs[..]) {
                (ScanPhase::Totals, &[totals]) => fiber.total(s, totals),
                (ScanPhase::Scan, &[result]) => fiber.scan(s, result, None),
                (ScanPhase::Scan, &[result, totals]) => fiber.scan(s, result, Some(totals)),
                _ => Err(Error::internal("a scan with other arrays")),
            }
        })?;
        let work = self.dims.iter().product::<usize>() as f64 * 4.0;
        let launch = Launch { work_items: self.blocks(), block: Some(self.threads as u32) };
        Kernel::end(emitter, name, launch, (work, format!("scan {phase:?}")))
    }
}

/// A block's part of a scan.
struct Fiber<'a> {
    plan: &'a ScanPlan,
    root: InstrId,
    /// Index of the fiber; 0 along the dimension that is scanned.
    index: Index,
    /// The number of the block, and of its chunk in the fiber.
    item: AffineExpr,
    chunk: AffineExpr,
}

/// A thread of a block.
#[derive(Clone, Copy)]
struct Member<'e, 'ctx> {
    /// Its number, 64 bits.
    thread: Lanes<'e, 'ctx>,
    lane: Lanes<'e, 'ctx>,
    warp: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Member<'e, 'ctx> {
    fn new(emitter: &'e Emitter<'ctx>) -> Result<Self> {
        let thread = emitter.register(Register::Thread)?.zext(64);
        let (lane, warp) = (thread & i64::from(WARP - 1), thread.lshr(i64::from(WARP.ilog2())));
        Ok(Member { thread, lane, warp })
    }
}

impl<'e, 'ctx, 'm> Fiber<'_> {
    fn pair(&self, s: &FusedEmitter<'e, 'ctx, 'm>, a: Value<'e, 'ctx>, b: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
        elemental::binary(s.emitter, self.plan.combiner, a, b)
    }

    fn neutral(&self, s: &FusedEmitter<'e, 'ctx, 'm>) -> Result<Value<'e, 'ctx>> {
        let identity = combiner_identity(self.plan.combiner, self.plan.ty);
        let identity = identity.ok_or_else(|| Error::internal("a combiner without an identity"))?;
        Ok(elemental::constant(s.emitter, self.plan.ty, identity))
    }

    /// Index of a step of the fiber.
    fn at(&self, step: AffineExpr) -> Index {
        let mut index = self.index.clone();
        index[self.plan.dimension] = match self.plan.from_end {
            true => step.scaled(-1).shifted(self.plan.size() as i64 - 1),
            false => step,
        };
        index
    }

    /// Runs `body` for the turns of the chunk, with the thread's first step in each; steps may be beyond the fiber's
    /// end.
    fn turns(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        member: Member<'e, 'ctx>,
        start: Value<'e, 'ctx>,
        body: &mut dyn FnMut(
            &mut FusedEmitter<'e, 'ctx, 'm>,
            Lanes<'e, 'ctx>,
            Value<'e, 'ctx>,
        ) -> Result<Value<'e, 'ctx>>,
    ) -> Result<Value<'e, 'ctx>> {
        let plan = self.plan;
        let tile = plan.threads * plan.width;
        let turns = s.full_range(plan.chunk / tile, 1);
        let last = s.for_each(turns, start.raws(), &mut |s, turn, carried| {
            let first =
                AffineExpr::symbol(turn).scaled(tile as i64).plus(&self.chunk.clone().scaled(plan.chunk as i64));
            let first = s.number_of(&first)?;
            let first = s.lanes_of(first) + member.thread * plan.width as i64;
            let carried = Value::from_raws(s.emitter, plan.ty, carried);
            Ok(body(s, first, carried)?.raws())
        })?;
        Ok(Value::from_raws(s.emitter, plan.ty, &last))
    }

    /// Runs `body` for a thread's steps that exist; elsewhere returns `otherwise`.
    fn steps(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        first: Lanes<'e, 'ctx>,
        otherwise: &[Value<'e, 'ctx>],
        body: impl FnOnce(&mut FusedEmitter<'e, 'ctx, 'm>, Index) -> Result<Vec<Value<'e, 'ctx>>>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (size, width) = (self.plan.size(), self.plan.width as u32);
        let raws = s.when(first.lt(size as i64), &raws_of(otherwise), |s| {
            let value = match width {
                1 => SymbolValue::Uniform(first),
                _ => SymbolValue::Lane { base: first, width, mask: None },
            };
            let level = s.depth();
            let step = s.define(Symbol { extent: Some(size), level }, value);
            Ok(raws_of(&body(s, self.at(AffineExpr::symbol(step)))?))
        })?;
        let types: Vec<ElementType> = otherwise.iter().map(Value::element_type).collect();
        Ok(values_of(s, &types, &raws))
    }

    /// The elements of a thread's steps, the identity for those that are not there.
    fn elements(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        first: Lanes<'e, 'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let (ty, width) = (self.plan.ty, self.plan.width as u32);
        let input = s.graph()[self.root].operand(0);
        let elements = self.steps(s, first, &[neutral.splat(width)], |s, at| {
            let x = s.element(input, &at)?;
            Ok(vec![elemental::convert(s.emitter, x, ty)?.splat(width)])
        })?;
        elements.first().copied().ok_or_else(|| Error::internal("a step without an element"))
    }

    /// Stores the total of the block's chunk.
    fn total(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, totals: PointerValue<'ctx>) -> Result<()> {
        let member = Member::new(s.emitter)?;
        let neutral = self.neutral(s)?;
        let sum = self.turns(s, member, neutral, &mut |s, first, sum| {
            let mut x = self.elements(s, first, neutral)?;
            while x.width() > 1 {
                let half = x.width() / 2;
                x = self.pair(s, x.slice(0, half), x.slice(half, half))?;
            }
            self.pair(s, sum, x)
        })?;
        let [_, all] = self.before(s, member, sum, neutral)?;
        let item = s.number_of(&self.item)?;
        let item = s.lanes_of(item);
        s.when(member.thread.eq(0), &[], |s| {
            elemental::store(s.emitter, all, totals, item, None);
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Stores the running totals of the block's chunk.
    fn scan(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        result: PointerValue<'ctx>,
        totals: Option<PointerValue<'ctx>>,
    ) -> Result<()> {
        let plan = self.plan;
        let width = plan.width as u32;
        let member = Member::new(s.emitter)?;
        let neutral = self.neutral(s)?;
        let start =
            *s.reduction_starts(self.root, 1)?.first().ok_or_else(|| Error::internal("a scan without a start"))?;
        let start = match totals {
            Some(totals) => {
                let before = self.chunks_before(s, member, totals, neutral)?;
                self.pair(s, start, before)?
            }
            None => start,
        };
        let shape = s.graph()[self.root].shape().expect_array()?.clone();
        let target = Source { base: result, shape };
        self.turns(s, member, start, &mut |s, first, sum| {
            let x = self.elements(s, first, neutral)?;
            let within = s.scan_register(plan.combiner, x, width)?;
            let [before, all] = self.before(s, member, within.slice(width - 1, 1), neutral)?;
            let before = self.pair(s, sum, before)?.splat(width);
            let running = self.pair(s, before, within)?;
            self.steps(s, first, &[], |s, at| s.store(&target, &at, running).map(|()| Vec::new()))?;
            self.pair(s, sum, all)
        })?;
        Ok(())
    }

    /// The total of the fiber's chunks before the block's.
    fn chunks_before(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        member: Member<'e, 'ctx>,
        totals: PointerValue<'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let ty = self.plan.ty;
        let chunk = s.number_of(&self.chunk)?;
        let chunk = s.lanes_of(chunk);
        let item = s.number_of(&self.item)?;
        let first = s.lanes_of(item) - chunk;
        let threads = self.plan.threads;
        let turns = s.full_range(self.plan.chunks.div_ceil(threads), 1);
        let sum = s.for_each(turns, neutral.raws(), &mut |s, turn, carried| {
            let number = s.number_of(&AffineExpr::symbol(turn).scaled(threads as i64))?;
            let number = s.lanes_of(number) + member.thread;
            let sum = Value::from_raws(s.emitter, ty, carried);
            s.when(number.lt(chunk), carried, |s| {
                let total = elemental::load(s.emitter, totals, first + number, ty, 1, None);
                Ok(self.pair(s, sum, total)?.raws())
            })
        })?;
        let sum = Value::from_raws(s.emitter, ty, &sum);
        let [_, all] = self.before(s, member, sum, neutral)?;
        Ok(all)
    }

    /// The values of the threads before this one in the block, combined, and those of all. All threads must be here.
    fn before(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        member: Member<'e, 'ctx>,
        own: Value<'e, 'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<[Value<'e, 'ctx>; 2]> {
        let (emitter, ty) = (s.emitter, self.plan.ty);
        let up = |value: Value<'e, 'ctx>, distance: u32| -> Result<Value<'e, 'ctx>> {
            let raws = value.raws().into_iter();
            let raws = raws.map(|raw| Ok(emitter.shuffle(emitter.lanes(raw), Shuffle::Up(distance))?.raw()));
            Ok(Value::from_raws(emitter, ty, &raws.collect::<Result<Vec<_>>>()?))
        };
        let mut through = own;
        for distance in (0..WARP.ilog2()).map(|bit| 1 << bit) {
            let both = self.pair(s, up(through, distance)?, through)?;
            through = elemental::select_lanes(member.lane.uge(i64::from(distance)), both, through);
        }
        let mut before = elemental::select_lanes(member.lane.eq(0), neutral, up(through, 1)?);
        let warps = self.plan.threads / u64::from(WARP);
        let parts = if ty.is_complex() { 2 } else { 1 };
        let shared = emitter.shared_array(stored_scalar(ty), parts * warps)?;
        s.when(member.lane.eq(i64::from(WARP - 1)), &[], |_| {
            elemental::store(emitter, through, shared, member.warp, None);
            Ok(Vec::new())
        })?;
        emitter.barrier()?;
        let (mut all, mut warps_before) = (neutral, neutral);
        for warp in 0..warps {
            let total = elemental::load(emitter, shared, s.number(warp as i64), ty, 1, None);
            all = self.pair(s, all, total)?;
            warps_before = elemental::select_lanes(member.warp.ugt(warp as i64), all, warps_before);
        }
        // The next turn writes where others may still read.
        emitter.barrier()?;
        before = self.pair(s, warps_before, before)?;
        Ok([before, all])
    }
}
