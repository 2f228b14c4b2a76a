//! Combines softmaxes of a query over different keys: first over the groups of a warp by shuffles, then over the warps
//! of a block in shared memory, then over the parts of the keys in scratch memory.

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Result};

use super::key_group::{KeyGroup, QueryState};
use super::plan::AttentionDecode;
use crate::elemental::Value;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::simt::attention::online::Row;
use crate::fused::tuning::attention_decode::WARPS;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Shuffle, WARP};

/// Softmax states of each warp, in shared memory.
pub(super) struct SharedRows<'ctx> {
    plan: AttentionDecode,
    /// Largest logit and sum of exponentials per warp and query (`softmaxes`), and accumulated values (`sums`).
    softmaxes: PointerValue<'ctx>,
    sums: PointerValue<'ctx>,
}

/// Softmax of a query over all keys of a block.
pub(super) struct BlockRow<'e, 'ctx> {
    row: Row<'e, 'ctx>,
    /// Rescaling factor of each warp's sums.
    scales: Vec<Lanes<'e, 'ctx>>,
}

impl<'e, 'ctx> BlockRow<'e, 'ctx> {
    /// Returns the factor that normalizes the sums.
    pub fn factor(&self) -> Lanes<'e, 'ctx> {
        self.row.sum.constant(1.0) / self.row.sum
    }
}

impl<'e, 'ctx, 'm> KeyGroup<'e, 'ctx, '_, 'm> {
    /// Stores the softmax states of each warp to shared memory. Ends with a barrier, so that all threads can read them.
    pub fn put_together(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        states: Vec<QueryState<'e, 'ctx>>,
    ) -> Result<SharedRows<'ctx>> {
        let plan = self.plan;
        let rows = WARPS * plan.queries;
        let softmaxes = s.emitter.shared_array(Scalar::F32, rows * 2)?;
        let sums = s.emitter.shared_array(Scalar::F32, rows * plan.heads[1])?;
        let states = states.into_iter().map(|state| self.of_warp(s, state)).collect::<Result<Vec<_>>>()?;
        let lane = self.thread & i64::from(WARP - 1);
        let warp = self.thread.lshr(i64::from(WARP.ilog2()));
        let first = warp * plan.queries as i64;
        let chunks = (plan.heads[1] / plan.access) as i64;
        s.when(lane.lt(chunks), &[], |s| {
            for (query, state) in (0..).zip(&states) {
                let at = (first + query) * plan.heads[1] as i64 + lane * plan.access as i64;
                // Shared memory is aligned for vectors of this width.
                for first in (0..plan.access as u32).step_by(4) {
                    s.emitter.store_aligned_lanes(state.sums.slice(first, 4), sums, at + i64::from(first));
                }
            }
            Ok(Vec::new())
        })?;
        s.when(lane.eq(0), &[], |s| {
            for (query, state) in (0..).zip(&states) {
                let at = (first + query) * 2;
                s.emitter.store_lanes(state.row.largest, softmaxes, at, None);
                s.emitter.store_lanes(state.row.sum, softmaxes, at + 1, None);
            }
            Ok(Vec::new())
        })?;
        s.emitter.barrier()?;
        Ok(SharedRows { plan, softmaxes, sums })
    }

    /// Combines the softmax states of the warp's groups. Each thread has the sums of its own elements.
    fn of_warp(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        QueryState { row, sums }: QueryState<'e, 'ctx>,
    ) -> Result<QueryState<'e, 'ctx>> {
        let distances: Vec<u32> =
            (0..WARP.ilog2()).map(|bit| 1 << bit).filter(|&distance| u64::from(distance) >= self.plan.group).collect();
        if distances.is_empty() {
            return Ok(QueryState { row, sums });
        }
        let other = |value, &distance: &u32| s.emitter.shuffle(value, Shuffle::Xor(distance));
        let mut largest = row.largest;
        for distance in &distances {
            largest = largest.maximum(other(largest, distance)?);
        }
        let scale = row.scale(largest);
        let mut sum = Value::new(ElementType::F32, row.sum * scale);
        let mut sums = Value::new(ElementType::F32, sums * scale.splat(sums.width()));
        for &distance in &distances {
            sum = s.plus_shuffled(sum, distance)?;
            sums = s.plus_shuffled(sums, distance)?;
        }
        Ok(QueryState { row: Row { largest, sum: sum.lanes() }, sums: sums.lanes() })
    }
}

impl<'ctx> SharedRows<'ctx> {
    /// Combines a query's softmax over all warps of the block.
    pub fn row<'e>(&self, s: &FusedEmitter<'e, 'ctx, '_>, query: u64) -> Result<BlockRow<'e, 'ctx>> {
        let load = |at: u64| s.emitter.load_lanes(self.softmaxes, s.number(at as i64), Scalar::F32, 1, None);
        let rows: Vec<Row<'e, 'ctx>> = (0..WARPS)
            .map(|warp| 2 * (warp * self.plan.queries + query))
            .map(|at| Row { largest: load(at), sum: load(at + 1) })
            .collect();
        let largest = rows.iter().skip(1).fold(rows[0].largest, |largest, row| largest.maximum(row.largest));
        let scales: Vec<_> = rows.iter().map(|row| row.scale(largest)).collect();
        let sums = rows.iter().zip(&scales).map(|(row, &scale)| row.sum * scale);
        let sum = sums.reduce(|a, b| a + b).unwrap_or(rows[0].sum);
        Ok(BlockRow { row: Row { largest, sum }, scales })
    }

    /// Returns the sum for an element of a value, over all warps of the block.
    pub fn sum<'e>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        row: &BlockRow<'e, 'ctx>,
        (query, element): (u64, Lanes<'e, 'ctx>),
    ) -> Result<Lanes<'e, 'ctx>> {
        let mut sum = row.row.sum.constant(0.0);
        for (warp, &scale) in (0..).zip(&row.scales) {
            let at = element + ((warp * self.plan.queries + query) * self.plan.heads[1]) as i64;
            sum = s.emitter.load_lanes(self.sums, at, Scalar::F32, 1, None).fma(scale, sum);
        }
        Ok(sum)
    }
}

/// Softmax states of the parts, in scratch memory. For each part, head and query: the sums for each element of a value,
/// then the largest logit and the sum of exponentials.
pub(super) struct Partial<'e, 'ctx> {
    plan: AttentionDecode,
    scratch: PointerValue<'ctx>,
    /// Index of the head's first query, within the block's own part or the first part.
    first: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Partial<'e, 'ctx> {
    /// Returns the states of combined part and head number `number`.
    pub fn new(
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        plan: AttentionDecode,
        scratch: PointerValue<'ctx>,
        number: &AffineExpr,
    ) -> Result<Self> {
        let first = s.number_of(&number.clone().scaled(plan.queries as i64))?;
        Ok(Partial { plan, scratch, first: s.lanes_of(first) })
    }

    fn place(&self, query: u64) -> Lanes<'e, 'ctx> {
        (self.first + query as i64) * self.plan.row() as i64
    }

    /// Stores the sum for an element of a value.
    pub fn store(&self, s: &FusedEmitter<'e, 'ctx, '_>, query: u64, element: Lanes<'e, 'ctx>, sum: Lanes<'e, 'ctx>) {
        s.emitter.store_lanes(sum, self.scratch, self.place(query) + element, None);
    }

    /// Stores the largest logit and the sum of exponentials of a query.
    pub fn store_softmax(&self, s: &FusedEmitter<'e, 'ctx, '_>, query: u64, row: &BlockRow<'e, 'ctx>) {
        let at = self.place(query) + self.plan.heads[1] as i64;
        s.emitter.store_lanes(row.row.largest, self.scratch, at, None);
        s.emitter.store_lanes(row.row.sum, self.scratch, at + 1, None);
    }

    /// Returns the position of a query's state in a part.
    fn of_part(&self, query: u64, part: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let parts = (self.plan.batches * self.plan.queries * self.plan.row()) as i64;
        self.place(query) + part * parts
    }

    fn load(&self, s: &FusedEmitter<'e, 'ctx, '_>, at: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        s.emitter.load_lanes(self.scratch, at, Scalar::F32, 1, None)
    }

    /// Returns the largest logit of a query over all parts.
    pub fn largest(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, query: u64) -> Result<Lanes<'e, 'ctx>> {
        let start = self.load(s, self.place(query)).constant(f64::NEG_INFINITY);
        let range = s.full_range(self.plan.cut.parts, 1);
        let found = s.for_each(range, vec![start.raw()], &mut |s, part, carried| {
            let part = s.number_of(&AffineExpr::symbol(part))?;
            let at = self.of_part(query, s.lanes_of(part)) + self.plan.heads[1] as i64;
            Ok(vec![s.emitter.lanes(carried[0]).maximum(self.load(s, at)).raw()])
        })?;
        Ok(s.emitter.lanes(found[0]))
    }

    /// Returns an element of a query's result, combined over all parts.
    pub fn result(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        (query, element): (u64, Lanes<'e, 'ctx>),
        largest: Lanes<'e, 'ctx>,
    ) -> Result<Lanes<'e, 'ctx>> {
        let zero = largest.constant(0.0);
        let range = s.full_range(self.plan.cut.parts, 1);
        let found = s.for_each(range, vec![zero.raw(); 2], &mut |s, part, carried| {
            let part = s.number_of(&AffineExpr::symbol(part))?;
            let at = self.of_part(query, s.lanes_of(part));
            let softmax = at + self.plan.heads[1] as i64;
            let row = Row { largest: self.load(s, softmax), sum: self.load(s, softmax + 1) };
            let scale = row.scale(largest);
            let [total, sum] = [0, 1].map(|number| s.emitter.lanes(carried[number]));
            Ok(vec![row.sum.fma(scale, total).raw(), self.load(s, at + element).fma(scale, sum).raw()])
        })?;
        let [total, sum] = [0, 1].map(|number| s.emitter.lanes(found[number]));
        Ok(sum * (zero.constant(1.0) / total))
    }
}
