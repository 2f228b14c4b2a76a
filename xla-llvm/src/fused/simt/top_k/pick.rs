//! Top-k with very small k: a thread group for each row.
//!
//! Each thread keeps the best of its own elements. The group takes the best of all, then the next one, `k` times. A
//! thread whose kept elements are all taken reads its part of the row again. An element is represented by 64 bits: its
//! rank in the order of its type, and below it the complement of its position, so that the first of equal elements is
//! the best.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::ops::BinaryOp;
use xla_hlo::{CompId, ElementKind, ElementType, Error, Module, Result};

use super::plan::{TopKPlan, lacks_addresses};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::core::combine::Combiner;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::WorkItems;
use crate::fused::loops::range::Range;
use crate::fused::mode::ThreadGroup;
use crate::fused::tuning::row_reduce::WARPS;
use crate::fused::tuning::top_k::{KEPT, LARGEST, READ};
use crate::lanes::{Lanes, Scalar};
use crate::simt::WARP;

/// Emits the body of a top-k kernel that picks the elements one at a time.
pub(super) fn emit<'ctx>(
    plan: &TopKPlan,
    (module, computation): (&Module, CompId),
    emitter: &Emitter<'ctx>,
    pointers: &[PointerValue<'ctx>],
) -> Result<Launch> {
    let &[operand, values, places] = pointers else { return Err(lacks_addresses()) };
    let threads = (plan.length / READ).next_power_of_two().clamp(WARP.into(), LARGEST) as u32;
    let mut s = FusedEmitter::new(emitter, module, computation)?;
    s.for_work_items(WorkItems::Group { threads }, plan.rows, &mut |s, row| {
        let group = s.enter_group(threads)?;
        let row = s.number_of(&AffineExpr::symbol(row))?;
        let row = s.lanes_of(row);
        let picker = Picker { plan, operand, group, first: row * plan.length as i64 };
        picker.pick(s, [values, places], row * plan.count as i64)
    })?;
    let (work_items, block) = match threads {
        WARP => (plan.rows.div_ceil(WARPS.into()), WARP * WARPS),
        threads => (plan.rows, threads),
    };
    Ok(Launch { work_items, block: Some(block) })
}

/// Thread group of a row.
struct Picker<'a, 'e, 'ctx> {
    plan: &'a TopKPlan,
    operand: PointerValue<'ctx>,
    group: ThreadGroup<'e, 'ctx>,
    /// Index of the row's first element.
    first: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Picker<'_, 'e, 'ctx> {
    /// Stores the best elements and their positions to the results, starting at index `to`.
    fn pick(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        [values, places]: [PointerValue<'ctx>; 2],
        to: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let (group, plan) = (self.group, self.plan);
        let kept = self.best_up_to(s, s.number(-1))?;
        let turns = s.full_range(plan.count, 1);
        s.for_each(turns, kept, &mut |s, turn, kept| {
            let turn = s.number_of(&AffineExpr::symbol(turn))?;
            let turn = s.lanes_of(turn);
            let own = Value::new(ElementType::U64, s.emitter.lanes(kept[0]));
            let best = s.combined(group, Combiner::Each(BinaryOp::Maximum), vec![own])?;
            let best = best.first().ok_or_else(|| Error::internal("thread group has no best element"))?.lanes();
            let place = !best.trunc(32);
            s.when(group.member.eq(0), &[], |s| {
                let element =
                    elemental::load(s.emitter, self.operand, self.first + place.zext(64), plan.element_type, 1, None);
                elemental::store(s.emitter, element, values, to + turn, None);
                s.emitter.store_lanes(place, places, to + turn, None);
                Ok(Vec::new())
            })?;
            let kept = s.when(own.lanes().eq(best), kept, |s| {
                let mut rest = kept[1..].to_vec();
                rest.push(s.number(0).raw());
                let is_empty = s.emitter.lanes(rest[0]).eq(0);
                s.when(is_empty, &rest, |s| self.best_up_to(s, best - 1))
            })?;
            // All threads of the group must have read its candidates before they are overwritten.
            s.sync(group)?;
            Ok(kept)
        })?;
        Ok(())
    }

    /// Returns the best of the thread's elements with numbers up to `bound`, in descending order; 0 if there are fewer.
    fn best_up_to(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        bound: Lanes<'e, 'ctx>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let (length, threads) = (self.plan.length as i64, u64::from(self.group.threads));
        let range = Range {
            start: self.group.member,
            end: s.number(length),
            extent: Some(self.plan.length),
            width: 1,
            step: READ * threads,
            whole: true,
        };
        let none = vec![s.number(0).raw(); KEPT];
        s.for_each(range, none, &mut |s, place, kept| {
            let place = s.number_of(&AffineExpr::symbol(place))?;
            let place = s.lanes_of(place);
            let places: Vec<_> = (0..READ).map(|turn| place + (turn * threads) as i64).collect();
            let elements: Vec<_> = places.iter().map(|&place| self.load(s, place.smin(length - 1))).collect();
            let mut kept = kept.to_vec();
            for (place, element) in places.into_iter().zip(elements) {
                let number = self.number(element, place);
                let counts = place.lt(length) & number.ule(bound);
                let number = counts.select(number, s.number(0));
                let least = s.emitter.lanes(kept[KEPT - 1]);
                kept = s.when(number.ugt(least), &kept, |s| Ok(inserted(s, &kept, number)))?;
            }
            Ok(kept)
        })
    }

    fn load(&self, s: &FusedEmitter<'e, 'ctx, '_>, place: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let at = self.first + place;
        elemental::load(s.emitter, self.operand, at, self.plan.element_type, 1, None).stored_lanes()
    }

    /// Returns the number of an element at a position. Better elements have greater numbers; 0 stands for no element.
    fn number(&self, element: Lanes<'e, 'ctx>, place: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let ty = self.plan.element_type;
        let width = ty.bit_width() as u32;
        let bits = element.cast_bits(Scalar::Int(width));
        let sign = 1i64 << (width - 1);
        let ordered = match ty.kind() {
            // Negative floats: the greater the bit pattern, the lesser the value.
            ElementKind::Float => bits ^ (bits.ashr(i64::from(width - 1)) | sign),
            ElementKind::Signed => bits ^ sign,
            ElementKind::Unsigned | ElementKind::Pred | ElementKind::Complex => bits,
        };
        let ordered = if self.plan.largest { ordered } else { !ordered };
        (ordered.zext(64) << 32) | (!place.trunc(32)).zext(64)
    }
}

/// Inserts a number into numbers in descending order, and drops the last one.
fn inserted<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    kept: &[BasicValueEnum<'ctx>],
    mut number: Lanes<'e, 'ctx>,
) -> Vec<BasicValueEnum<'ctx>> {
    let mut with = Vec::with_capacity(kept.len());
    for &known in kept {
        let known = s.emitter.lanes(known);
        with.push(known.umax(number).raw());
        number = known.umin(number);
    }
    with
}
