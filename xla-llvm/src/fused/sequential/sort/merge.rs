//! Stable merge sort: sorts short runs by insertion, then merges pairs of runs. For any results of the comparison, it
//! terminates and loses no item.

use super::items::Items;
use crate::fused::emitter::FusedEmitter;
use crate::fused::tuning::row_sort::RUN;
use crate::lanes::Lanes;

/// Sorts the row's items and returns the number of the first one. The memory has room for twice the number of items.
pub(super) fn sort<'e, 'ctx>(s: &FusedEmitter<'e, 'ctx, '_>, items: &Items<'_, 'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let e = s.emitter;
    let (zero, count) = (s.number(0), s.number(items.count));
    e.each([zero, count], 1, |i| items.set(e, i, items.item(e, i)));
    e.each([zero, count], RUN, |begin| {
        let end = (begin + RUN).umin(items.count);
        e.each([begin + 1, end], 1, |i| insert(s, items, begin, i));
    });
    let [here, _] = e.repeat_while(
        [zero, s.number(RUN)],
        |[_, run]| run.ult(items.count),
        |[here, run]| {
            let there = -here + items.count;
            let pair = run + run;
            e.each([zero, count], pair, |begin| {
                let [middle, end] = [begin + run, begin + pair].map(|end| end.umin(items.count));
                merge(s, items, [here, there], [begin, middle, end]);
            });
            [there, pair]
        },
    );
    here
}

/// Inserts item `i` into the sorted items from `begin` on.
fn insert<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    items: &Items<'_, 'e, 'ctx>,
    begin: Lanes<'e, 'ctx>,
    i: Lanes<'e, 'ctx>,
) {
    let e = s.emitter;
    let item = items.get(e, i);
    // The item before the first one is loaded but not used; before a row's first item, the load is clamped.
    let before = |at: Lanes<'e, 'ctx>| items.get(e, (at - 1).smax(0));
    let [at, _] = e.repeat_while(
        [i, before(i)],
        |[at, other]| begin.ult(at) & items.is_before(s, item, other),
        |[at, other]| {
            items.set(e, at, other);
            let at = at - 1;
            [at, before(at)]
        },
    );
    items.set(e, at, item);
}

/// Merges the sorted runs `begin..middle` and `middle..end` of the items at `here` into the items at `there`.
fn merge<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    items: &Items<'_, 'e, 'ctx>,
    [here, there]: [Lanes<'e, 'ctx>; 2],
    [begin, middle, end]: [Lanes<'e, 'ctx>; 3],
) {
    let e = s.emitter;
    let [begin_left, middle, end] = [begin, middle, end].map(|number| here + number);
    // Load both candidates, so that the choice needs no branch.
    let [left, right, to] = e.repeat_while(
        [begin_left, middle, there + begin],
        |[left, right, _]| left.ult(middle) & right.ult(end),
        |[left, right, to]| {
            let (l, r) = (items.get(e, left), items.get(e, right));
            let takes_right = items.is_before(s, r, l);
            items.set(e, to, takes_right.select(r, l));
            let one = takes_right.zext(64);
            [left + (one ^ 1), right + one, to + 1]
        },
    );
    let rest = |from, end: Lanes<'e, 'ctx>, to| {
        let [_, to] = e.repeat_while(
            [from, to],
            |[from, _]| from.ult(end),
            |[from, to]| {
                items.set(e, to, items.get(e, from));
                [from + 1, to + 1]
            },
        );
        to
    };
    let to = rest(left, middle, to);
    rest(right, end, to);
}
