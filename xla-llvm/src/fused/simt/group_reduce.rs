//! Reductions by a thread group: each thread reduces some elements, then shuffles and shared memory combine the results
//! of the threads.

use inkwell::values::PointerValue;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{CompId, ElementType, Error, Result};

use crate::elemental::{self, Value};
use crate::fused::core::address::compute_bits;
use crate::fused::core::combine::{Combiner, Element, Elements};
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Symbol};
use crate::fused::loops::variables::counters;
use crate::fused::mode::{GroupKind, ThreadGroup};
use crate::fused::simt::load_batch::LoadBatch;
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::fused::value::SymbolValue;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, Shuffle, WARP};

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Reduces elements with an operation that has an identity; all threads of the group receive the result.
    pub(crate) fn reduced_by_group(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        op: BinaryOp,
        neutral: Value<'e, 'ctx>,
        extents: &[u64],
        element: &mut Element<'_, 'e, 'ctx, 'm>,
    ) -> Result<Value<'e, 'ctx>> {
        let ty = neutral.element_type();
        let (&last, outer) = extents.split_last().unwrap_or((&1, &[]));
        if let Some(row) = self.register_row(last).filter(|_| outer.is_empty()) {
            let mut reduced: Option<Value<'e, 'ctx>> = None;
            for (number, &turn) in (1..).zip(&row.symbols) {
                let mut x = element(self, &[AffineExpr::symbol(turn)])?.splat(row.width);
                if let Some(exists) = row.last.filter(|_| number == row.symbols.len()) {
                    x = elemental::select_lanes(exists, x, neutral.splat(row.width));
                }
                reduced = Some(match reduced {
                    None => x,
                    Some(before) => elemental::binary(self.emitter, op, before, x)?,
                });
            }
            return self.across_lanes_and_threads(group, op, reduced.unwrap_or(neutral));
        }
        // If the last dimension is shorter than the group, a loop over it would leave threads idle: all dimensions are
        // linearized to one.
        let is_column = matches!(group.kind, GroupKind::Column(_));
        let flat = (last < u64::from(group.threads) || is_column) && !outer.is_empty();
        let bits = compute_bits(ty);
        let turns = match flat {
            true => self.load_batch(group, extents.iter().product(), 1),
            false => self.load_batch(group, last, if is_column { 1 } else { group.access_width(last, bits) }),
        };
        let (width, together) = (turns.width, self.loads_in_flight(turns.width, bits));
        let looped: &[u64] = if flat { &[] } else { outer };
        let raws = self.nested(looped, 1, &mut Vec::new(), neutral.splat(width).raws(), &mut |s, exprs, carried| {
            s.for_turns(turns, together, carried.to_vec(), &mut |s, places, carried| {
                let elements = places.iter().map(|place| {
                    let exprs = match flat {
                        true => counters(s, place, extents)?,
                        false => [exprs, std::slice::from_ref(place)].concat(),
                    };
                    Ok(element(s, &exprs)?.splat(width))
                });
                let elements = elements.collect::<Result<Vec<_>>>()?;
                let reduced = Value::from_raws(s.emitter, ty, carried);
                let reduced = elements.into_iter().try_fold(reduced, |all, x| elemental::binary(s.emitter, op, all, x));
                Ok(reduced?.raws())
            })
        })?;
        self.across_lanes_and_threads(group, op, Value::from_raws(self.emitter, ty, &raws))
    }

    /// Reduces the lanes of each thread's value, then the values of all threads.
    fn across_lanes_and_threads(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        op: BinaryOp,
        mut reduced: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        while reduced.width() > 1 {
            let half = reduced.width() / 2;
            reduced = elemental::binary(self.emitter, op, reduced.slice(0, half), reduced.slice(half, half))?;
        }
        let reduced = self.combined(group, Combiner::Each(op), vec![reduced])?;
        reduced.first().copied().ok_or_else(|| Error::internal("reduction over a thread group has no value"))
    }

    /// Reduces elements with a computation, at least one per thread; all threads of the group receive the results. Each
    /// thread has contiguous elements, so that the order of operands is kept: of several NaN, an `argmax` returns the
    /// first.
    pub(crate) fn reduced_in_order_by_group(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        computation: CompId,
        types: &[ElementType],
        extents: &[u64],
        element: &mut Elements<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let combiner = Combiner::Computation(computation);
        let total: u64 = extents.iter().product();
        let is_row = extents.iter().filter(|&&extent| extent > 1).count() <= 1;
        let bits = types.iter().map(|&ty| compute_bits(ty)).max().unwrap_or(ACCESS_BITS);
        let width = match group.kind {
            GroupKind::Warp | GroupKind::Block if is_row => group.access_width(total, bits),
            GroupKind::Warp | GroupKind::Block | GroupKind::Column(_) => 1,
        };
        // All threads have the same number of vectors, or one more.
        let step = u64::from(width);
        let (groups, threads) = (total / step, u64::from(group.threads));
        let first = |member: Lanes<'e, 'ctx>| (member * groups as i64).lshr(i64::from(threads.ilog2())) * step as i64;
        let (start, end) = (first(group.member), first(group.member + 1));
        let elements = &mut |s: &mut Self, place: &AffineExpr| -> Result<Vec<_>> {
            let exprs = counters(s, place, extents)?;
            Ok(element(s, &exprs)?.into_iter().map(|value| value.splat(width)).collect())
        };
        let lane =
            |values: &[Value<'e, 'ctx>], lane| values.iter().map(|value| value.slice(lane, 1)).collect::<Vec<_>>();
        // The first element is the initial value of the reduction.
        let begin = self.nested_level(|s| {
            let value = match width {
                1 => SymbolValue::Uniform(start),
                _ => SymbolValue::Lane { base: start, width, mask: None },
            };
            let level = s.depth();
            let place = s.define(Symbol { extent: Some(total), level }, value);
            let values = elements(s, &AffineExpr::symbol(place))?;
            let next = |reduced: Vec<_>, number| s.combine(combiner, &reduced, &lane(&values, number));
            (1..width).try_fold(lane(&values, 0), next)
        })?;
        let count = groups / threads - 1;
        let turns = LoadBatch {
            first: start + step as i64,
            extent: total - count.saturating_sub(1) * step,
            width,
            step,
            count,
            last: (groups % threads > 0).then(|| (start + ((count + 1) * step) as i64).lt(end)),
            end: total,
        };
        let together = self.loads_in_flight(width, bits);
        let raws = self.for_turns(turns, together, raws_of(&begin), &mut |s, places, carried| {
            let read = places.iter().map(|place| elements(s, place)).collect::<Result<Vec<_>>>()?;
            let mut lanes = read.iter().flat_map(|values| (0..width).map(move |number| lane(values, number)));
            let before = values_of(s, types, carried);
            Ok(raws_of(&lanes.try_fold(before, |reduced, next| s.combine(combiner, &reduced, &next))?))
        })?;
        let reduced = values_of(self, types, &raws);
        self.combined(group, combiner, reduced)
    }

    /// Combines the values of all threads of the group; each thread receives the result.
    pub(crate) fn combined(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        combiner: Combiner,
        values: Vec<Value<'e, 'ctx>>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        match group.kind {
            GroupKind::Warp => {
                // LLVM may contract a lane's own product into an FMA with the value from another lane, so that the
                // rounding differs between lanes. All lanes therefore continue with the result of lane 0.
                let values = self.shuffled(combiner, values, WARP)?;
                values.into_iter().map(|value| self.shuffled_value(value, Shuffle::From(0))).collect()
            }
            GroupKind::Block => self.combined_in_block(group, combiner, values),
            GroupKind::Column(column) => self.combined_in_column(group, column, combiner, values),
        }
    }

    fn combined_in_column(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        column: Lanes<'e, 'ctx>,
        combiner: Combiner,
        values: Vec<Value<'e, 'ctx>>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let arrays = self.shared_values(&values, u64::from(WARP * group.threads))?;
        self.store_shared(&values, &arrays, group.member * i64::from(WARP) + column);
        self.emitter.barrier()?;
        let mut reduced = self.load_shared(&values, &arrays, column);
        for member in 1..group.threads {
            let others = self.load_shared(&values, &arrays, column + i64::from(member * WARP));
            reduced = self.combine(combiner, &reduced, &others)?;
        }
        Ok(reduced)
    }

    fn combined_in_block(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        combiner: Combiner,
        values: Vec<Value<'e, 'ctx>>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let values = self.shuffled(combiner, values, WARP)?;
        let warps = group.threads / WARP;
        let (warp, lane) = (group.member.lshr(i64::from(WARP.ilog2())), group.member & i64::from(WARP - 1));
        let arrays = self.shared_values(&values, warps.into())?;
        self.when(lane.eq(0), &[], |s| {
            s.store_shared(&values, &arrays, warp);
            Ok(Vec::new())
        })?;
        self.emitter.barrier()?;
        let values = self.load_shared(&values, &arrays, lane & i64::from(warps - 1));
        self.shuffled(combiner, values, warps)
    }

    /// Combines the values of every run of `lanes` consecutive lanes of a warp; `lanes` is a power of two.
    fn shuffled(
        &self,
        combiner: Combiner,
        mut values: Vec<Value<'e, 'ctx>>,
        lanes: u32,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        // Adjacent lanes are combined first, so that the order of operands is kept.
        for distance in (0..lanes.ilog2()).map(|bit| 1 << bit) {
            let others = values
                .iter()
                .map(|&value| self.shuffled_value(value, Shuffle::Xor(distance)))
                .collect::<Result<Vec<_>>>()?;
            values = match combiner {
                Combiner::Each(_) => self.combine(combiner, &values, &others)?,
                Combiner::Computation(_) => {
                    let is_left = (self.emitter.register(Register::Thread)? & i64::from(distance)).eq(0);
                    let chosen = |x: &[Value<'e, 'ctx>], y: &[Value<'e, 'ctx>]| -> Vec<Value<'e, 'ctx>> {
                        x.iter().zip(y).map(|(&x, &y)| elemental::select_lanes(is_left, x, y)).collect()
                    };
                    self.combine(combiner, &chosen(&values, &others), &chosen(&others, &values))?
                }
            };
        }
        Ok(values)
    }

    /// Returns the value of another lane.
    fn shuffled_value(&self, value: Value<'e, 'ctx>, from: Shuffle) -> Result<Value<'e, 'ctx>> {
        let parts = value.raws().into_iter().map(|raw| Ok(self.emitter.shuffle(self.emitter.lanes(raw), from)?.raw()));
        Ok(Value::from_raws(self.emitter, value.element_type(), &parts.collect::<Result<Vec<_>>>()?))
    }

    /// Allocates shared memory for `count` sets of values with the types of `like`, with one array per component.
    fn shared_values(&self, like: &[Value<'e, 'ctx>], count: u64) -> Result<Vec<PointerValue<'ctx>>> {
        let scalars = raws_of(like).into_iter().map(|raw| in_memory(self.emitter.lanes(raw).scalar()));
        scalars.map(|scalar| self.emitter.shared_array(scalar, count)).collect()
    }

    fn store_shared(&self, values: &[Value<'e, 'ctx>], arrays: &[PointerValue<'ctx>], at: Lanes<'e, 'ctx>) {
        for (raw, &array) in raws_of(values).into_iter().zip(arrays) {
            let raw = self.emitter.lanes(raw);
            let raw = if raw.scalar() == Scalar::Int(1) { raw.zext(8) } else { raw };
            self.emitter.store_lanes(raw, array, at, None);
        }
    }

    fn load_shared(
        &self,
        like: &[Value<'e, 'ctx>],
        arrays: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
    ) -> Vec<Value<'e, 'ctx>> {
        let parts = raws_of(like).into_iter().zip(arrays).map(|(raw, &array)| {
            let scalar = self.emitter.lanes(raw).scalar();
            let value = self.emitter.load_lanes(array, at, in_memory(scalar), 1, None);
            if scalar == Scalar::Int(1) { value.trunc(1).raw() } else { value.raw() }
        });
        let types: Vec<ElementType> = like.iter().map(Value::element_type).collect();
        values_of(self, &types, &parts.collect::<Vec<_>>())
    }
}

/// Returns the type that a lane has in memory.
fn in_memory(scalar: Scalar) -> Scalar {
    if scalar == Scalar::Int(1) { Scalar::Int(8) } else { scalar }
}
