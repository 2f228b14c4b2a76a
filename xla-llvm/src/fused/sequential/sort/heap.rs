//! Selection of the least items: a max-heap keeps the best items so far. Each further item replaces the root, which is
//! the worst of them, or is skipped.

use xla_hlo::Result;

use super::items::{ItemKind, Items, Order};
use crate::fused::core::element_key::key_lanes;
use crate::fused::emitter::FusedEmitter;
use crate::fused::tuning::row_sort::BLOCK_REGISTERS;
use crate::lanes::Lanes;

/// Stores the `wanted` least items in order at the beginning of memory; `wanted` is positive and less than the count.
pub(super) fn select<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    items: &Items<'_, 'e, 'ctx>,
    wanted: i64,
) -> Result<()> {
    let e = s.emitter;
    let (zero, end) = (s.number(0), s.number(wanted));
    e.each([zero, end], 1, |i| items.set(e, i, items.item(e, i)));
    e.each([zero, s.number(wanted / 2)], 1, |done| {
        let at = -done + (wanted / 2 - 1);
        sift(s, items, [at, end], items.get(e, at));
    });
    scan(s, items, wanted)?;
    // Move the worst item to the end of the shrinking heap.
    e.each([s.number(1), end], 1, |done| {
        let last = -done + wanted;
        let (worst, item) = (items.get(e, zero), items.get(e, last));
        items.set(e, last, worst);
        sift(s, items, [zero, last], item);
    });
    Ok(())
}

/// Scans the elements that are not in the heap yet.
fn scan<'e, 'ctx>(s: &mut FusedEmitter<'e, 'ctx, '_>, items: &Items<'_, 'e, 'ctx>, wanted: i64) -> Result<()> {
    let e = s.emitter;
    let (zero, end, heap) = (s.number(0), s.number(items.count), s.number(wanted));
    let [row] = items.operands else { return Ok(()) };
    let width = e.target().lanes(row.array.bits()).max(1);
    let block = i64::from(width * BLOCK_REGISTERS);
    let scalar = |s: &mut FusedEmitter<'e, 'ctx, '_>, begin: Lanes<'e, 'ctx>, end: Lanes<'e, 'ctx>| {
        e.each([begin, end], 1, |i| {
            let item = items.item(e, i);
            // An `if`, written as a loop with at most one iteration.
            e.repeat_while(
                [item.ult(items.get(e, zero))],
                |[is_better]| is_better,
                |[is_better]| {
                    sift(s, items, [zero, heap], item);
                    [is_better.mask(false)]
                },
            );
        });
    };
    let ItemKind::KeyedPlace { place, .. } = items.kind else { return Ok(()) };
    let Order::Key { key, .. } = items.order else { return Ok(()) };
    let blocks = (items.count - wanted) / block;
    let rest = if width > 1 { wanted + blocks * block } else { wanted };
    if rest > wanted {
        let mut range = s.full_range(blocks as u64, 1);
        (range.start, range.end, range.extent) = (heap, s.number(rest), None);
        range.step = block as u64;
        s.for_each(range, Vec::new(), &mut |s, begin, _| {
            let begin = s.number_of(&crate::fused::loops::affine::AffineExpr::symbol(begin))?;
            let begin = s.lanes_of(begin);
            let limit = items.get(e, zero).lshr(i64::from(place)).trunc_to(row.array.bits()).splat(width);
            // Compare a whole block at once: mostly none of its elements is better.
            let better = (0..BLOCK_REGISTERS).map(|register| {
                let at = begin + i64::from(register * width);
                key_lanes(&key, row.load_block(e, at, width)).ult(limit)
            });
            let any = better.reduce(|a, b| a | b).map_or(begin.mask(true), Lanes::any);
            s.when(any, &[], |s| {
                scalar(s, begin, begin + block);
                Ok(Vec::new())
            })?;
            Ok(Vec::new())
        })?;
    }
    scalar(s, s.number(rest), end);
    Ok(())
}

/// Inserts an item into a heap of `count` items whose place `at` is free and whose subtrees below it are heaps.
fn sift<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    items: &Items<'_, 'e, 'ctx>,
    [at, count]: [Lanes<'e, 'ctx>; 2],
    item: Lanes<'e, 'ctx>,
) {
    let e = s.emitter;
    // Returns the place of the greater child, past the end if there is none, and the child.
    let below = |at: Lanes<'e, 'ctx>| {
        let left = at + at + 1;
        let right = left + 1;
        let [l, r] = [left, right].map(|place| items.get(e, place.umin(count - 1)));
        let takes_right = right.ult(count) & l.ult(r);
        [takes_right.select(right, left), takes_right.select(r, l)]
    };
    let [place, greater] = below(at);
    let [at, ..] = e.repeat_while(
        [at, place, greater],
        |[_, place, greater]| place.ult(count) & item.ult(greater),
        |[at, place, greater]| {
            items.set(e, at, greater);
            let [next, after] = below(place);
            [place, next, after]
        },
    );
    items.set(e, at, item);
}
