//! A block of threads that scans: elements of its threads, and their totals before each of them.
//!
//! The totals of a warp's threads are scanned by shuffles, those of warps through shared memory.

use inkwell::values::PointerValue;
use xla_hlo::ops::combiner_identity;
use xla_hlo::{Error, InstrId, Result};

use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, Symbol};
use crate::fused::loops::variables::counters;
use crate::fused::simt::block_member::Member;
use crate::fused::simt::scan::plan::ScanPlan;
use crate::fused::value::{Source, SymbolValue};
use crate::lanes::Lanes;
use crate::simt::{Shuffle, WARP};

/// A block that scans a fiber, or a tile of it.
pub(super) struct BlockScan<'a, 'e, 'ctx> {
    pub plan: &'a ScanPlan,
    pub root: InstrId,
    /// Index of the fiber; 0 along the dimension that is scanned.
    index: Index,
    member: Member<'e, 'ctx>,
    /// Number of the thread, 64 bits.
    pub thread: Lanes<'e, 'ctx>,
}

impl<'a, 'e, 'ctx, 'm> BlockScan<'a, 'e, 'ctx> {
    /// Begins in all threads of the block; `fiber` is the number of the fiber.
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
        let member = Member::new(s.emitter, plan.threads)?;
        Ok(BlockScan { plan, root, index, member, thread: member.thread.zext(64) })
    }

    /// The combiner's value of two.
    pub(super) fn pair(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        a: Value<'e, 'ctx>,
        b: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        elemental::binary(s.emitter, self.plan.combiner, a, b)
    }

    /// The combiner's identity.
    pub(super) fn neutral(&self, s: &FusedEmitter<'e, 'ctx, 'm>) -> Result<Value<'e, 'ctx>> {
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

    /// Index of a thread's neighbouring steps from a first one on, all of which exist.
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

    /// Stores running totals of a thread's steps, those that exist.
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

    /// The array of the result.
    pub(super) fn target(&self, s: &FusedEmitter<'e, 'ctx, 'm>, result: PointerValue<'ctx>) -> Result<Source<'ctx>> {
        let shape = s.graph()[self.root].shape().expect_array()?.clone();
        Ok(Source { base: result, shape })
    }

    /// The value that the scan begins with.
    pub(super) fn start(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Value<'e, 'ctx>> {
        let starts = s.reduction_starts(self.root, 1)?;
        starts.first().copied().ok_or_else(|| Error::internal("a scan without a start"))
    }

    /// The elements of a thread's steps, the identity for those that are not there. Those are read elsewhere rather
    /// than not at all: a thread reads much before it looks at any.
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

    /// The values of the threads before this one in the block, combined, and those of all. All threads must be here.
    pub(super) fn before(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        own: Value<'e, 'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<[Value<'e, 'ctx>; 2]> {
        let (before, all) = self.before_each(s, &[own], neutral)?;
        // The next turn writes where others may still read.
        s.emitter.barrier()?;
        let before = before.first().copied().ok_or_else(|| Error::internal("a turn without values"))?;
        Ok([before, all])
    }

    /// The same for values of several turns, each turn's after those of all threads in the one before. What is shared
    /// may be read until the next barrier.
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

    /// The values of the warp's lanes up to this one, combined.
    fn through_warp(&self, s: &FusedEmitter<'e, 'ctx, 'm>, own: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
        let mut through = own;
        for distance in (0..WARP.ilog2()).map(|bit| 1 << bit) {
            let both = self.pair(s, up(s.emitter, through, distance)?, through)?;
            through = elemental::select_lanes(self.member.lane.uge(i64::from(distance)), both, through);
        }
        Ok(through)
    }
}

/// The value of the lane so many before.
fn up<'e, 'ctx>(emitter: &'e Emitter<'ctx>, value: Value<'e, 'ctx>, distance: u32) -> Result<Value<'e, 'ctx>> {
    let raws = value.raws().into_iter();
    let raws = raws.map(|raw| Ok(emitter.shuffle(emitter.lanes(raw), Shuffle::Up(distance))?.raw()));
    Ok(Value::from_raws(emitter, value.element_type(), &raws.collect::<Result<Vec<_>>>()?))
}
