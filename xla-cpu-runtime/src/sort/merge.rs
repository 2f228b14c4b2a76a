//! Parallel stable merge sort. For an inconsistent comparator it still terminates and loses no item.

use crate::pool::parallel_tasks;

/// Minimum number of items of a row that is sorted by several threads.
const LONG: usize = 1 << 14;
/// Average number of chunks of a merge for each thread, for load balancing.
const CHUNKS_A_THREAD: usize = 4;
/// Minimum number of items of a chunk of a merge.
const LEAST_CHUNK: usize = 1 << 11;

/// Order of items. Each thread uses its own copy.
pub(super) trait Order<T>: Clone + Send {
    /// Whether `a` is strictly before `b`.
    fn is_before(&mut self, a: T, b: T) -> bool;

    /// Sorts items stably on one thread. `scratch` is as long as `items`; its contents are lost.
    fn sort_run(&mut self, items: &mut [T], scratch: &mut [T]);
}

/// Sorts items stably on up to `threads` threads. `scratch` is resized to the length of `items`; its contents are lost.
pub(super) fn sort<T: Copy + Send + Sync>(
    items: &mut Vec<T>,
    scratch: &mut Vec<T>,
    order: &impl Order<T>,
    threads: usize,
) {
    let Some(&any) = items.first() else { return };
    scratch.resize(items.len(), any);
    if threads < 2 || items.len() < LONG {
        order.clone().sort_run(items, scratch);
        return;
    }
    let mut run = items.len().div_ceil(threads.next_power_of_two());
    let runs: Vec<_> = items.chunks_mut(run).zip(scratch.chunks_mut(run)).map(|run| (run, order.clone())).collect();
    parallel_tasks(threads, runs, |((items, scratch), mut order)| order.sort_run(items, scratch));
    let chunk = (items.len() / (threads * CHUNKS_A_THREAD)).max(LEAST_CHUNK);
    while run < items.len() {
        let mut merges = Vec::new();
        for (pair, to) in items.chunks(2 * run).zip(scratch.chunks_mut(2 * run)) {
            let (left, right) = pair.split_at(run.min(pair.len()));
            cut(Merge { left, right, to }, chunk, &mut order.clone(), &mut merges);
        }
        let merges = merges.into_iter().map(|merge| (merge, order.clone())).collect();
        parallel_tasks(threads, merges, |(merge, mut order)| merge.run(&mut order));
        std::mem::swap(items, scratch);
        run *= 2;
    }
}

/// Sorts items stably by merging runs, on one thread.
pub(super) fn sort_run<T: Copy>(items: &mut [T], scratch: &mut [T], order: &mut impl Order<T>) {
    for run in items.chunks_mut(SHORT) {
        insert(run, order);
    }
    let (mut from, mut to) = (&mut *items, &mut *scratch);
    let (mut run, mut swapped) = (SHORT, false);
    while run < from.len() {
        for (pair, to) in from.chunks(2 * run).zip(to.chunks_mut(2 * run)) {
            let (left, right) = pair.split_at(run.min(pair.len()));
            Merge { left, right, to }.run(order);
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
        run *= 2;
    }
    if swapped {
        items.copy_from_slice(scratch);
    }
}

/// Number of items of a run that is sorted by insertion.
const SHORT: usize = 8;

fn insert<T: Copy>(items: &mut [T], order: &mut impl Order<T>) {
    for i in 1..items.len() {
        let item = items[i];
        let mut at = i;
        while at > 0 && order.is_before(item, items[at - 1]) {
            items[at] = items[at - 1];
            at -= 1;
        }
        items[at] = item;
    }
}

/// Merge of two sorted runs into `to`; the items of the left run precede those of the right run in the input.
struct Merge<'a, T> {
    left: &'a [T],
    right: &'a [T],
    to: &'a mut [T],
}

impl<T: Copy> Merge<'_, T> {
    fn run(self, order: &mut impl Order<T>) {
        let Merge { mut left, mut right, to } = self;
        let mut done = 0;
        // Both candidates are read, so that the choice needs no branch.
        while let (Some(&l), Some(&r)) = (left.first(), right.first()) {
            let takes_right = order.is_before(r, l);
            to[done] = if takes_right { r } else { l };
            left = &left[usize::from(!takes_right)..];
            right = &right[usize::from(takes_right)..];
            done += 1;
        }
        to[done..done + left.len()].copy_from_slice(left);
        to[done + left.len()..].copy_from_slice(right);
    }
}

/// Splits a merge into independent merges of about `chunk` items with the same result.
fn cut<'a, T: Copy>(merge: Merge<'a, T>, chunk: usize, order: &mut impl Order<T>, chunks: &mut Vec<Merge<'a, T>>) {
    let Merge { left, right, to } = merge;
    if to.len() <= chunk || left.is_empty() || right.is_empty() {
        chunks.push(Merge { left, right, to });
        return;
    }
    // The longer run is split in the middle, and the other one at the position of the middle item. Equal items of the
    // left run stay first.
    let (l, r) = if left.len() >= right.len() {
        let middle = left[left.len() / 2];
        (left.len() / 2, right.partition_point(|&item| order.is_before(item, middle)))
    } else {
        let middle = right[right.len() / 2];
        (left.partition_point(|&item| !order.is_before(middle, item)), right.len() / 2)
    };
    let ((left, left_end), (right, right_end)) = (left.split_at(l), right.split_at(r));
    let (to, to_end) = to.split_at_mut(l + r);
    cut(Merge { left, right, to }, chunk, order, chunks);
    cut(Merge { left: left_end, right: right_end, to: to_end }, chunk, order, chunks);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct By<F>(F);

    impl<F: Fn(usize, usize) -> bool + Clone + Send> Order<usize> for By<F> {
        fn is_before(&mut self, a: usize, b: usize) -> bool {
            (self.0)(a, b)
        }

        fn sort_run(&mut self, items: &mut [usize], scratch: &mut [usize]) {
            sort_run(items, scratch, self);
        }
    }

    fn sorted(length: usize, threads: usize, before: impl Fn(usize, usize) -> bool + Clone + Send) -> Vec<usize> {
        let mut items: Vec<usize> = (0..length).collect();
        sort(&mut items, &mut Vec::new(), &By(before), threads);
        items
    }

    #[test]
    fn sorts_stably_on_any_number_of_threads() {
        let key = |i: usize| i.wrapping_mul(7919) % 1009;
        for length in [0, 1, 2, 7, 8, 9, 100, LONG - 1, LONG, 3 * LONG + 17] {
            let mut expected: Vec<usize> = (0..length).collect();
            expected.sort_by_key(|&i| key(i));
            for threads in [1, 2, 3, 8] {
                assert_eq!(sorted(length, threads, move |a, b| key(a) < key(b)), expected, "{length} on {threads}");
            }
        }
    }

    #[test]
    fn nothing_is_lost_when_the_order_is_none() {
        let length = 2 * LONG + 3;
        for threads in [1, 2, 5] {
            let random = |a: usize, b: usize| (a.wrapping_mul(31) ^ b.wrapping_mul(17)).is_multiple_of(3);
            for mut found in [
                sorted(length, threads, |_, _| true),
                sorted(length, threads, |a, b| a <= b),
                sorted(length, threads, random),
            ] {
                found.sort_unstable();
                assert!(found.into_iter().eq(0..length), "on {threads} threads");
            }
        }
    }
}
