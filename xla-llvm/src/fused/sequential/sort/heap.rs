//! Selection of the least items: a max-heap keeps the best items so far. Each further item replaces the root, which is
//! the worst of them, or is skipped.

use xla_hlo::Result;

use super::items::{ItemKind, Items, Order};
use crate::fused::core::element_key::key_lanes;
use crate::fused::emitter::FusedEmitter;
use crate::fused::tuning::row_sort::BLOCK_REGISTERS;
use crate::lanes::Lanes;

/// Stores the `wanted` least items in order at the beginning of memory; `wanted` is positive and less than the count.
///
/// The first phase makes a heap of the first items and scans the others, the second sorts the heap. Both emit one loop,
/// since code generation takes most of the time to compile a selection.
pub(super) fn select<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    items: &Items<'_, 'e, 'ctx>,
    wanted: i64,
) -> Result<()> {
    let e = s.emitter;
    let (zero, end) = (s.number(0), s.number(wanted));
    e.each([zero, end], 1, |i| items.set(e, i, items.item(e, i)));
    let phases = s.full_range(2, 1);
    s.for_each(phases, Vec::new(), &mut |s, phase, _| {
        let is_first = s.uniform_value(phase)?.eq(0);
        e.each([zero, is_first.select(s.number(wanted / 2), s.number(wanted - 1))], 1, |done| {
            let last = -done + (wanted - 1);
            // Inserts an inner item into its subtrees, or moves the worst item to the end of the shrinking heap.
            let from = is_first.select(-done + (wanted / 2 - 1), last);
            let (worst, item) = (items.get(e, zero), items.get(e, from));
            items.set(e, from, worst);
            let [at, count] = [is_first.select(from, zero), is_first.select(end, last)];
            sift(s, items, [at, count], item);
        });
        s.when(is_first, &[], |s| {
            scan(s, items, wanted)?;
            Ok(Vec::new())
        })
    })?;
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
    if width == 1 || items.count - wanted < block {
        scalar(s, heap, end);
        return Ok(());
    }
    let mut range = s.full_range((items.count - wanted).unsigned_abs().div_ceil(block.unsigned_abs()), 1);
    (range.start, range.end, range.extent) = (heap, end, None);
    range.step = block as u64;
    s.for_each(range, Vec::new(), &mut |s, begin, _| {
        let begin = s.uniform_value(begin)?;
        let limit = items.get(e, zero).lshr(i64::from(place)).trunc_to(row.array.bits()).splat(width);
        // Compare a whole block at once: mostly none of its elements is better. The last block may begin earlier.
        let first = begin.smin(items.count - block);
        let better = (0..BLOCK_REGISTERS).map(|register| {
            let at = first + i64::from(register * width);
            key_lanes(&key, row.load_block(e, at, width)).ult(limit)
        });
        let any = better.reduce(|a, b| a | b).map_or(begin.mask(true), Lanes::any);
        s.when(any, &[], |s| {
            scalar(s, begin, (begin + block).smin(items.count));
            Ok(Vec::new())
        })
    })?;
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
