//! Top-k of rows: keeps a few candidates and skips elements that cannot be among the best.
#![expect(unsafe_code, reason = "works on raw buffers of generated code")]

use crate::kernel::KernelFn;
use crate::keyed_place::KeyedPlace;
use crate::line::{Bits, Line};
use crate::plans::sort::TopKPlan;
use crate::pool::parallel_for;
use xla_passes::analysis::element_order::Key;

/// Minimum total number of elements of a top-k that uses several threads.
const PARALLEL: usize = 1 << 14;
/// Average number of chunks for each thread, for load balancing.
const CHUNKS_A_THREAD: usize = 4;
/// Number of elements that are tested together; usually none of them is a candidate.
const BLOCK: usize = 32;
/// Minimum number of candidates in addition to the best, so that the worst are discarded infrequently.
const SPARE: usize = 256;

/// Finds the best elements of rows by the plan that `length` numbers at `descriptor` encode; `buffers` are operand,
/// values and indices.
pub(super) unsafe extern "C" fn xla_cpu_top_k(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of `length` numbers.
    let numbers = unsafe { std::slice::from_raw_parts(descriptor, length as usize) };
    let Some(plan) = TopKPlan::from_numbers(numbers) else { return };
    // SAFETY: the caller passes pointers to the plan's operand and its two results.
    let [from, values, places] = [0, 1, 2].map(|i| unsafe { *buffers.add(i) });
    // SAFETY: the arrays have that many elements of those widths. The operand is only read, and each thread writes only
    // the results of its own rows.
    let best = unsafe {
        Best {
            from: Line::new(from, plan.width, 1, plan.rows * plan.length),
            values: Line::new(values, plan.width, 1, plan.rows * plan.k),
            places: Line::new(places, size_of::<i32>(), 1, plan.rows * plan.k),
            plan: &plan,
        }
    };
    if plan.k == 0 || plan.rows == 0 {
        return;
    }
    let threads = if plan.rows * plan.length < PARALLEL { 1 } else { threads as usize };
    let chunks = plan.rows.min(threads * CHUNKS_A_THREAD);
    parallel_for(threads, chunks, &|chunk| {
        let rows = plan.rows * chunk / chunks..plan.rows * (chunk + 1) / chunks;
        match plan.width {
            1 => best.rows::<u8, u64>(rows),
            2 => best.rows::<u16, u64>(rows),
            4 => best.rows::<u32, u64>(rows),
            _ => best.rows::<u64, u128>(rows),
        }
    });
}

struct Best<'a> {
    from: Line,
    values: Line,
    places: Line,
    plan: &'a TopKPlan,
}

impl Best<'_> {
    fn rows<T: Bits, C: KeyedPlace>(&self, rows: std::ops::Range<usize>) {
        let mut candidates = Vec::new();
        for row in rows {
            candidates.clear();
            self.collect::<T, C>(row * self.plan.length, &mut candidates);
            candidates.sort_unstable();
            for (i, place) in candidates.iter().take(self.plan.k).map(|c| c.place()).enumerate() {
                let to = row * self.plan.k + i;
                self.values.write(to, self.from.read::<T>(row * self.plan.length + place));
                self.places.write(to, place as u32);
            }
        }
    }

    /// Collects the best elements of the row that begins at `first`, and some others, in arbitrary order.
    fn collect<T: Bits, C: KeyedPlace>(&self, first: usize, candidates: &mut Vec<C>) {
        let TopKPlan { length, k, key, .. } = *self.plan;
        let room = (2 * k).max(k + SPARE);
        let mut at = 0;
        // The first elements are always candidates, as are all elements of a short row.
        while at < length.min(room) {
            candidates.push(C::new(key.of(self.from.read::<T>(first + at).low()), at));
            at += 1;
        }
        if at == length {
            return;
        }
        let mut limit = keep_best(candidates, k);
        let passes = Passes::<T>::new(key);
        while at < length {
            let block = at..(at + BLOCK).min(length);
            at = block.end;
            let passes = passes.filter(|_| block.len() == BLOCK);
            if passes.is_some_and(|passes| !passes.any_below(self.from.read_block(first + block.start), limit)) {
                continue;
            }
            for i in block {
                let key = key.of(self.from.read::<T>(first + i).low());
                // An equal key at a higher index is worse than the present candidates.
                if key < limit {
                    candidates.push(C::new(key, i));
                    if candidates.len() == room {
                        limit = keep_best(candidates, k);
                    }
                }
            }
        }
    }
}

/// Fast test whether all elements of a block can be skipped.
#[derive(Clone, Copy)]
struct Passes<T> {
    float: T,
    flip: T,
}

impl<T: Bits> Passes<T> {
    /// Creates the test; `None` for elements narrower than their storage type.
    fn new(key: Key) -> Option<Passes<T>> {
        let (is_float, flip) = key.plain().filter(|_| key.bits as usize == 8 * size_of::<T>())?;
        Some(Passes { float: T::of(if is_float { u64::MAX } else { 0 }), flip: T::of(flip) })
    }

    /// Whether one of the elements has a key below the limit.
    fn any_below(&self, block: [T; BLOCK], limit: u64) -> bool {
        let limit = T::of(limit);
        // Test all elements: with vector instructions this is faster than an early exit.
        block.into_iter().fold(false, |any, element| any | (element.ordered(self.float, self.flip) < limit))
    }
}

/// Retains the `k` best of more candidates; returns the worst key among them.
fn keep_best<C: KeyedPlace>(candidates: &mut Vec<C>, k: usize) -> u64 {
    let (_, &mut worst, _) = candidates.select_nth_unstable(k - 1);
    candidates.truncate(k);
    worst.key()
}
