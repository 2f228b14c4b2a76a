//! Sorts rows of arrays together: by integer keys if the order is known, otherwise by a compiled comparator.
#![expect(unsafe_code, reason = "sorts raw buffers of generated code, by a kernel of generated code")]

mod merge;
mod radix;

use std::ops::Range;

use crate::kernel::KernelFn;
use crate::keyed_place::KeyedPlace;
use crate::line::{Bits, Line};
use crate::plans::sort::{SortOrder, SortPlan};
use crate::pool::{parallel_for, parallel_tasks};
use merge::Order;
use xla_passes::analysis::element_order::Key;

/// Minimum total number of elements of a sort that uses several threads.
const PARALLEL: usize = 1 << 13;
/// Average number of chunks for each thread, for load balancing.
const CHUNKS_A_THREAD: usize = 4;

/// Sorts by the plan that `length` numbers at `descriptor` encode. `buffers` are N operands and N results. The first of
/// `kernels` is the comparator, if the plan needs one: its operands are two elements of each array, its result is a
/// `pred`.
pub(super) unsafe extern "C" fn xla_cpu_sort(
    buffers: *const *mut u8,
    kernels: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of `length` numbers.
    let numbers = unsafe { std::slice::from_raw_parts(descriptor, length as usize) };
    let Some(plan) = SortPlan::from_numbers(numbers) else { return };
    let count = plan.widths.len();
    // SAFETY: the caller passes pointers to the plan's operands, then to its results.
    let pointers = unsafe { std::slice::from_raw_parts(buffers, 2 * count) };
    // SAFETY: a plan with a comparator comes with its kernel.
    let comparator = matches!(plan.order, SortOrder::Comparator).then(|| unsafe { *kernels });
    let arrays =
        (0..count).map(|i| Array { from: pointers[i], to: pointers[count + i], width: plan.widths[i] }).collect();
    Sort { plan: &plan, arrays, comparator }.run(threads as usize);
}

/// Array with its operand and its result.
struct Array {
    from: *mut u8,
    to: *mut u8,
    width: usize,
}

struct Sort<'a> {
    plan: &'a SortPlan,
    arrays: Vec<Array>,
    comparator: Option<KernelFn>,
}

// SAFETY: operands are only read, and each row of the results is written by the thread that sorts it.
unsafe impl Sync for Sort<'_> {}

/// Row of an array.
#[derive(Clone, Copy)]
struct Row {
    from: Line,
    to: Line,
    width: usize,
}

impl Sort<'_> {
    fn run(&self, threads: usize) {
        let rows = self.plan.rows;
        if rows.count * rows.length < PARALLEL {
            self.sort_rows(0..rows.count, 1);
        } else if rows.count < threads {
            self.sort_rows(0..rows.count, threads);
        } else {
            let chunks = rows.count.min(threads * CHUNKS_A_THREAD);
            parallel_for(threads, chunks, &|chunk| {
                self.sort_rows(rows.count * chunk / chunks..rows.count * (chunk + 1) / chunks, 1);
            });
        }
    }

    /// Returns the row of that number in every array.
    fn row(&self, number: usize) -> Vec<Row> {
        let rows = self.plan.rows;
        let row = |array: &Array| {
            let line = |base: *mut u8| {
                // SAFETY: the row is in the array, whose rows the plan describes; see `Sync` above for threads.
                unsafe { Line::new(base.add(rows.first(number) * array.width), array.width, rows.step, rows.length) }
            };
            Row { from: line(array.from), to: line(array.to), width: array.width }
        };
        self.arrays.iter().map(row).collect()
    }

    fn sort_rows(&self, rows: Range<usize>, threads: usize) {
        let length = self.plan.rows.length;
        match self.plan.order {
            SortOrder::Key { key, .. } if self.arrays.len() == 1 => match self.arrays[0].width {
                1 => self.sort_values::<u8>(rows, key, threads),
                2 => self.sort_values::<u16>(rows, key, threads),
                4 => self.sort_values::<u32>(rows, key, threads),
                _ => self.sort_values::<u64>(rows, key, threads),
            },
            SortOrder::Key { array, key } if key.bits <= 32 && length <= 1 << 32 => {
                self.sort_places::<u64>(rows, array, key, threads);
            }
            SortOrder::Key { array, key } => self.sort_places::<u128>(rows, array, key, threads),
            SortOrder::Comparator => self.sort_by_comparator(rows, threads),
        }
    }

    /// Sorts rows of the only array; the elements themselves are moved.
    fn sort_values<T: Bits>(&self, rows: Range<usize>, key: Key, threads: usize) {
        let order = ByKey { bits: key.bits, key: move |item: T| key.of(item.low()) };
        let (mut items, mut scratch) = (Vec::with_capacity(self.plan.rows.length), Vec::new());
        for number in rows {
            let [row] = self.row(number)[..] else { return };
            items.clear();
            items.extend((0..self.plan.rows.length).map(|i| row.from.read::<T>(i)));
            merge::sort(&mut items, &mut scratch, &order, threads);
            items.iter().enumerate().for_each(|(i, &item)| row.to.write(i, item));
        }
    }

    /// Sorts rows by the keys of one array: keys are moved together with indices, elements once at the end.
    fn sort_places<P: KeyedPlace>(&self, rows: Range<usize>, array: usize, key: Key, threads: usize) {
        let order = ByKey { bits: key.bits, key: P::key };
        let (mut items, mut scratch) = (Vec::with_capacity(self.plan.rows.length), Vec::new());
        for number in rows {
            let row = self.row(number);
            items.clear();
            match row[array].width {
                1 => pack_keys::<u8, P>(row[array].from, self.plan.rows.length, key, &mut items),
                2 => pack_keys::<u16, P>(row[array].from, self.plan.rows.length, key, &mut items),
                4 => pack_keys::<u32, P>(row[array].from, self.plan.rows.length, key, &mut items),
                _ => pack_keys::<u64, P>(row[array].from, self.plan.rows.length, key, &mut items),
            }
            merge::sort(&mut items, &mut scratch, &order, threads);
            permute(&row, &items, P::place, threads);
        }
    }

    /// Sorts the indices of rows by the compiled comparator.
    fn sort_by_comparator(&self, rows: Range<usize>, threads: usize) {
        let Some(kernel) = self.comparator else { return };
        let (mut items, mut scratch) = (Vec::with_capacity(self.plan.rows.length), Vec::new());
        for number in rows {
            let row = self.row(number);
            items.clear();
            items.extend(0..self.plan.rows.length);
            let pointers = vec![std::ptr::null_mut(); 2 * row.len() + 1];
            merge::sort(&mut items, &mut scratch, &ByComparator { kernel, row: &row, pointers }, threads);
            permute(&row, &items, |place| place, threads);
        }
    }
}

fn pack_keys<T: Bits, P: KeyedPlace>(from: Line, length: usize, key: Key, items: &mut Vec<P>) {
    items.extend((0..length).map(|i| P::new(key.of(from.read::<T>(i).low()), i)));
}

/// Writes the results: element `i` comes from the index that item `i` holds.
fn permute<I: Copy + Sync>(row: &[Row], items: &[I], place: fn(I) -> usize, threads: usize) {
    if threads < 2 {
        return row.iter().for_each(|array| permute_array(array, 0, items, place));
    }
    let chunk = items.len().div_ceil(threads * CHUNKS_A_THREAD).max(PARALLEL);
    let mut tasks = Vec::new();
    for array in row {
        tasks.extend(items.chunks(chunk).enumerate().map(|(number, items)| (array, number * chunk, items)));
    }
    parallel_tasks(threads, tasks, |(array, first, items)| permute_array(array, first, items, place));
}

/// Writes the elements of one array from `first` on.
fn permute_array<I: Copy>(array: &Row, first: usize, items: &[I], place: fn(I) -> usize) {
    match array.width {
        1 => permute_elements::<u8, I>(array, first, items, place),
        2 => permute_elements::<u16, I>(array, first, items, place),
        4 => permute_elements::<u32, I>(array, first, items, place),
        8 => permute_elements::<u64, I>(array, first, items, place),
        _ => permute_elements::<u128, I>(array, first, items, place),
    }
}

fn permute_elements<T: Bits, I: Copy>(array: &Row, first: usize, items: &[I], place: fn(I) -> usize) {
    for (i, &item) in items.iter().enumerate() {
        array.to.write(first + i, array.from.read::<T>(place(item)));
    }
}

/// Order of items by their keys.
#[derive(Clone)]
struct ByKey<F> {
    bits: u32,
    key: F,
}

impl<T: Copy, F: Fn(T) -> u64 + Copy + Send> Order<T> for ByKey<F> {
    #[inline(always)]
    fn is_before(&mut self, a: T, b: T) -> bool {
        (self.key)(a) < (self.key)(b)
    }

    fn sort_run(&mut self, items: &mut [T], scratch: &mut [T]) {
        radix::sort_by_key(items, scratch, self.bits, self.key);
    }
}

/// Order of the indices of a row by a kernel.
#[derive(Clone)]
struct ByComparator<'a> {
    kernel: KernelFn,
    row: &'a [Row],
    /// Pointers to the kernel's operands and its result, reused between calls.
    pointers: Vec<*mut u8>,
}

// SAFETY: the pointers are set before each call, to elements that all threads only read, and to a variable of the
// caller.
unsafe impl Send for ByComparator<'_> {}

impl Order<usize> for ByComparator<'_> {
    fn is_before(&mut self, a: usize, b: usize) -> bool {
        let mut answer = 0u8;
        for (row, pointers) in self.row.iter().zip(self.pointers.chunks_exact_mut(2)) {
            pointers.copy_from_slice(&[row.from.address(a), row.from.address(b)]);
        }
        if let Some(result) = self.pointers.last_mut() {
            *result = &raw mut answer;
        }
        // SAFETY: the kernel is the comparator of the plan: it reads two elements of each array, in this order, and
        // writes one byte. It has one work item.
        unsafe { (self.kernel)(self.pointers.as_ptr(), 0, 1) };
        answer != 0
    }

    fn sort_run(&mut self, items: &mut [usize], scratch: &mut [usize]) {
        merge::sort_run(items, scratch, self);
    }
}
