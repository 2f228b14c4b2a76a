//! Scan by a block of threads: loads of the threads' elements, and prefixes over threads.
//!
//! Shuffles scan the totals of a warp's threads; the totals of warps are scanned through shared memory.

use inkwell::values::PointerValue;
use xla_hlo::ops::combiner_identity;
use xla_hlo::{Error, InstrId, Result};

use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, Symbol};
use crate::fused::loops::variables::counters;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::simt::scan::plan::ScanPlan;
use crate::fused::value::{Source, SymbolValue};
use crate::lanes::Lanes;
use crate::simt::{Shuffle, WARP};

/// Block that scans a fiber or a tile of it. A fiber is a line of elements along the scanned dimension.
pub(super) struct BlockScan<'a, 'e, 'ctx> {
    pub plan: &'a ScanPlan,
    pub root: InstrId,
    /// Index of the fiber; 0 along the scanned dimension.
    index: Index,
    member: BlockThread<'e, 'ctx>,
    /// Index of the thread in the block, 64 bits.
    pub thread: Lanes<'e, 'ctx>,
}

impl<'a, 'e, 'ctx, 'm> BlockScan<'a, 'e, 'ctx> {
    /// Sets up the scan in all threads of the block; `fiber` is the index of the fiber.
    pub fn new(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        plan: &'a ScanPlan,
        root: InstrId,
        fiber: AffineExpr,
    ) -> Result<Self> {
        let (independent, sizes): (Vec<usize>, Vec<u64>) = plan.independent().unzip();
        let mut index = vec![AffineExpr::default(); independent.len() + 1];
        for (dimension, counter) in independent.into_iter().zip(counters(s, &fiber, &sizes)?) {
            index[dimension] = counter;
        }
        let member = BlockThread::new(s.emitter, plan.threads)?;
        Ok(BlockScan { plan, root, index, member, thread: member.thread.zext(64) })
    }

    /// Combines two values.
    pub(super) fn pair(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        a: Value<'e, 'ctx>,
        b: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        elemental::binary(s.emitter, self.plan.combiner, a, b)
    }

    /// Returns the combiner's identity.
    pub(super) fn neutral(&self, s: &FusedEmitter<'e, 'ctx, 'm>) -> Result<Value<'e, 'ctx>> {
        let identity = combiner_identity(self.plan.combiner, self.plan.ty);
        let identity = identity.ok_or_else(|| {
            Error::internal(format!("scan combiner {:?} has no identity of type {}", self.plan.combiner, self.plan.ty))
        })?;
        Ok(elemental::constant(s.emitter, self.plan.ty, identity))
    }

    /// Returns the index of a step of the fiber.
    fn at(&self, step: AffineExpr) -> Index {
        let mut index = self.index.clone();
        index[self.plan.dimension] = match self.plan.from_end {
            true => step.scaled(-1).shifted(self.plan.size() as i64 - 1),
            false => step,
        };
        index
    }

    /// Returns the index of a thread's adjacent steps starting at `first`. All of them must exist.
    fn index_of(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, first: Lanes<'e, 'ctx>) -> Index {
        let width = self.plan.width as u32;
        let value = match width {
            1 => SymbolValue::Uniform(first),
            _ => SymbolValue::Lane { base: first, width, mask: None },
        };
        let level = s.depth();
        let step = s.define(Symbol { extent: Some(self.plan.size()), level }, value);
        self.at(AffineExpr::symbol(step))
    }

    /// Stores the running totals of a thread's steps, if they exist.
    pub(super) fn store(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        target: &Source<'ctx>,
        first: Lanes<'e, 'ctx>,
        running: Value<'e, 'ctx>,
    ) -> Result<()> {
        s.when(first.lt(self.plan.size() as i64), &[], |s| {
            let at = self.index_of(s, first);
            s.store(target, &at, running).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Returns the array of the result.
    pub(super) fn target(&self, s: &FusedEmitter<'e, 'ctx, 'm>, result: PointerValue<'ctx>) -> Result<Source<'ctx>> {
        let shape = s.graph()[self.root].shape().expect_array()?.clone();
        Ok(Source { base: result, shape })
    }

    /// Returns the initial value of the scan.
    pub(super) fn start(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Value<'e, 'ctx>> {
        let starts = s.reduction_starts(self.root, 1)?;
        starts
            .first()
            .copied()
            .ok_or_else(|| Error::internal(format!("scan %{} has no initial value", s.graph()[self.root].name())))
    }

    /// Loads the elements of a thread's steps; steps that do not exist yield the identity. Addresses are clamped
    /// instead of branching around a load, so that several loads can be in flight.
    pub(super) fn elements(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        first: Lanes<'e, 'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let (ty, width, size) = (self.plan.ty, self.plan.width as u32, self.plan.size());
        let input = s.graph()[self.root].operand(0);
        let is_whole = size.is_multiple_of(self.plan.threads * self.plan.width * self.plan.turns);
        let there = if is_whole { first } else { first.smin((size - self.plan.width) as i64) };
        let at = self.index_of(s, there);
        let x = s.element(input, &at)?;
        let x = elemental::convert(s.emitter, x, ty)?.splat(width);
        let is_there = first.lt(size as i64);
        Ok(if is_whole { x } else { elemental::select_lanes(is_there.splat(width), x, neutral.splat(width)) })
    }

    /// Returns the exclusive prefix of a value over the block's threads, and the combination over all threads. All
    /// threads must execute it.
    pub(super) fn before(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        own: Value<'e, 'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<[Value<'e, 'ctx>; 2]> {
        let (before, all) = self.before_each(s, &[own], neutral)?;
        // The next iteration overwrites shared memory that other threads may still read.
        s.emitter.barrier()?;
        let before = before.first().copied().ok_or_else(|| Error::internal("scan tile has no values"))?;
        Ok([before, all])
    }

    /// Computes the exclusive prefixes of several values per thread, ordered by value index first, then by thread.
    /// Other threads may read the shared memory until the next barrier.
    pub(super) fn before_each(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        own: &[Value<'e, 'ctx>],
        neutral: Value<'e, 'ctx>,
    ) -> Result<(Vec<Value<'e, 'ctx>>, Value<'e, 'ctx>)> {
        let (emitter, ty, member) = (s.emitter, self.plan.ty, self.member);
        let warps = self.plan.threads / u64::from(WARP);
        let parts = if ty.is_complex() { 2 } else { 1 };
        let shared = emitter.shared_array(stored_scalar(ty), parts * warps * own.len() as u64)?;
        let through = own.iter().map(|&own| self.through_warp(s, own)).collect::<Result<Vec<_>>>()?;
        s.when(member.lane.eq(i64::from(WARP - 1)), &[], |_| {
            for (turn, &through) in through.iter().enumerate() {
                elemental::store(emitter, through, shared, member.warp + (turn as u64 * warps) as i64, None);
            }
            Ok(Vec::new())
        })?;
        emitter.barrier()?;
        let (mut all, mut each) = (neutral, Vec::with_capacity(own.len()));
        for (turn, through) in through.into_iter().enumerate() {
            let mut warps_before = all;
            for warp in 0..warps {
                let at = s.number((turn as u64 * warps + warp) as i64);
                all = self.pair(s, all, elemental::load(emitter, shared, at, ty, 1, None))?;
                warps_before = elemental::select_lanes(member.warp.ugt(warp as i64), all, warps_before);
            }
            let before = elemental::select_lanes(member.lane.eq(0), neutral, up(emitter, through, 1)?);
            each.push(self.pair(s, warps_before, before)?);
        }
        Ok((each, all))
    }

    /// Combines the values of the warp's lanes up to and including this one.
    fn through_warp(&self, s: &FusedEmitter<'e, 'ctx, 'm>, own: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
        let mut through = own;
        for distance in (0..WARP.ilog2()).map(|bit| 1 << bit) {
            let both = self.pair(s, up(s.emitter, through, distance)?, through)?;
            through = elemental::select_lanes(self.member.lane.uge(i64::from(distance)), both, through);
        }
        Ok(through)
    }
}

/// Returns the value of the lane `distance` lower.
fn up<'e, 'ctx>(emitter: &'e Emitter<'ctx>, value: Value<'e, 'ctx>, distance: u32) -> Result<Value<'e, 'ctx>> {
    let raws = value.raws().into_iter();
    let raws = raws.map(|raw| Ok(emitter.shuffle(emitter.lanes(raw), Shuffle::Up(distance))?.raw()));
    Ok(Value::from_raws(emitter, value.element_type(), &raws.collect::<Result<Vec<_>>>()?))
}
