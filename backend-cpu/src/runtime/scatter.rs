//! Scatter: finds where windows go, and hands their runs to a kernel that combines them.
//!
//! Windows are taken in row-major order. Threads share them so that no element is written by two, and each element sees its
//! updates in that order whatever the number of threads.
#![expect(unsafe_code, reason = "works on raw buffers of generated code, by a kernel of generated code")]

use std::ops::Range;

use super::KernelFn;
use super::line::{Bits, Line};
use super::pool::parallel_for;
use crate::scatter_plan::{Apart, BatchAxis, ScatterPlan};

/// Elements of the updates that are worth several threads.
const PARALLEL: usize = 1 << 14;
/// Runs that are handed to the kernel at once.
const RUNS: usize = 1024;
/// Windows whose starts are computed together.
const BLOCK: usize = 256;
/// The start of a window that is dropped; it stays above this whatever is added.
const DROPPED: usize = 1 << 63;
/// Bytes that a thread copies at least.
const COPY_PIECE: usize = 1 << 20;

/// Scatters as the plan says that `length` numbers at `descriptor` are; `buffers` are N inputs, the indices, N updates and N results,
/// which may lie where the inputs are. `kernels` begins with the one that combines runs: its pointers are N arrays, N updates, and
/// two lists of positions.
pub(super) unsafe extern "C" fn xla_cpu_scatter(
    buffers: *const *mut u8,
    kernels: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of so many numbers.
    let numbers = unsafe { std::slice::from_raw_parts(descriptor, length as usize) };
    let Some(plan) = ScatterPlan::from_numbers(numbers) else { return };
    let (count, threads) = (plan.widths.len(), threads as usize);
    // SAFETY: the caller passes pointers to the plan's operands and results.
    let pointers = unsafe { std::slice::from_raw_parts(buffers, 3 * count + 1) };
    let (inputs, updates, results) = (&pointers[..count], &pointers[count + 1..][..count], &pointers[2 * count + 1..]);
    for ((&input, &result), width) in inputs.iter().zip(results).zip(&plan.widths) {
        if input != result {
            // SAFETY: both have that many bytes, and do not overlap: the input is needed when the result is begun.
            unsafe { copy(input, result, plan.elements[0] * width, threads) };
        }
    }
    if plan.elements.contains(&0) {
        return;
    }
    let indices = plan.batch.iter().map(|axis| (axis.extent - 1) * axis.indices);
    let count = indices.chain(plan.components.iter().map(|c| c.offset).max()).sum::<usize>() + 1;
    let scatter = Scatter {
        // SAFETY: that is how far the plan reaches into the indices, which are only read.
        indices: unsafe { Line::new(pointers[inputs.len()], plan.index.0, 1, count) },
        // SAFETY: a scatter comes with its kernel.
        kernel: unsafe { *kernels },
        arrays: [results, updates].concat(),
        plan: &plan,
    };
    let is_worth_it = plan.elements[1] >= PARALLEL && plan.apart != Apart::No;
    let parts = if is_worth_it { threads.max(1) } else { 1 };
    parallel_for(parts, parts, &|part| scatter.part(part, parts));
}

/// Copies bytes, a large number of them on several threads.
///
/// # Safety
/// There are that many at both places, which do not overlap, and nobody else uses those written.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize, threads: usize) {
    struct Places(*const u8, *mut u8);
    // SAFETY: each thread copies a piece of its own.
    unsafe impl Sync for Places {}
    let places = &Places(from, to);
    let pieces = (bytes / COPY_PIECE).clamp(1, threads.max(1));
    parallel_for(threads, pieces, &|piece| {
        let Places(from, to) = places;
        let (start, end) =
            (bytes / pieces * piece, if piece + 1 == pieces { bytes } else { bytes / pieces * (piece + 1) });
        // SAFETY: the piece is inside of what the caller promised.
        unsafe { from.add(start).copy_to_nonoverlapping(to.add(start), end - start) };
    });
}

struct Scatter<'a> {
    plan: &'a ScatterPlan,
    indices: Line,
    kernel: KernelFn,
    /// The arrays that are written, then the updates.
    arrays: Vec<*mut u8>,
}

// SAFETY: updates and indices are only read, and `part` lets no two parts write the same element.
unsafe impl Sync for Scatter<'_> {}

/// The windows of one thread: numbers along the dimensions that number them, and those of components of starts.
struct Part {
    batch: Vec<Range<usize>>,
    components: Vec<Range<usize>>,
}

/// The numbers of a component that windows of a part begin at, and what a step is worth in the inputs.
struct Wanted {
    range: Range<usize>,
    worth: usize,
}

/// Where a window is looked up and where its update begins; `inputs` is what is known of its place without looking.
#[derive(Clone, Copy, Default)]
struct Place {
    indices: usize,
    updates: usize,
    inputs: usize,
}

impl Place {
    /// The place `i` steps along a dimension of the numbering.
    fn moved(self, steps: &BatchAxis, i: usize) -> Place {
        Place {
            indices: self.indices + i * steps.indices,
            updates: self.updates + i * steps.updates,
            inputs: self.inputs + i * steps.inputs,
        }
    }
}

impl Scatter<'_> {
    /// Combines the windows of a part.
    fn part(&self, number: usize, parts: usize) {
        let share = |extent: usize| {
            let each = extent.div_ceil(parts);
            (each * number).min(extent)..(each * (number + 1)).min(extent)
        };
        let mut part = Part {
            batch: self.plan.batch.iter().map(|axis| 0..axis.extent).collect(),
            // At other numbers a window does not fit, and is dropped.
            components: self.plan.components.iter().map(|component| 0..component.places).collect(),
        };
        let shared = match self.plan.apart {
            Apart::No => None,
            Apart::Batch(axis) => part.batch.get_mut(axis),
            Apart::Component(component) => part.components.get_mut(component),
        };
        match shared {
            Some(range) => *range = share(range.end),
            None if number > 0 => return,
            None => {}
        }
        let mut runs = Runs::new(self);
        self.windows(0, Place::default(), &part, &mut runs);
        runs.flush();
    }

    /// Goes through the windows from that dimension of the numbering on.
    fn windows(&self, axis: usize, place: Place, part: &Part, runs: &mut Runs) {
        const ONE: BatchAxis = BatchAxis { extent: 1, indices: 0, updates: 0, inputs: 0 };
        let last = self.plan.batch.len().saturating_sub(1);
        if axis >= last {
            let steps = self.plan.batch.get(axis).unwrap_or(&ONE);
            return self.row(steps, part.batch.get(axis).cloned().unwrap_or(0..1), place, part, runs);
        }
        for i in part.batch[axis].clone() {
            self.windows(axis + 1, place.moved(&self.plan.batch[axis], i), part, runs);
        }
    }

    /// Goes through the windows along the last dimension of the numbering, a block of them at a time: first one component
    /// of all starts, then the next.
    fn row(&self, steps: &BatchAxis, numbers: Range<usize>, place: Place, part: &Part, runs: &mut Runs) {
        let mut block = [0; BLOCK];
        for first in numbers.clone().step_by(BLOCK) {
            let starts = &mut block[..BLOCK.min(numbers.end - first)];
            let place = place.moved(steps, first);
            starts.iter_mut().enumerate().for_each(|(i, start)| *start = place.inputs + i * steps.inputs);
            for (component, range) in self.plan.components.iter().zip(&part.components) {
                let at = place.indices + component.offset;
                let wanted = Wanted { range: range.clone(), worth: component.inputs };
                match self.plan.index.0 {
                    1 => self.add_component::<u8>(starts, at, steps.indices, &wanted),
                    2 => self.add_component::<u16>(starts, at, steps.indices, &wanted),
                    4 => self.add_component::<u32>(starts, at, steps.indices, &wanted),
                    _ => self.add_component::<u64>(starts, at, steps.indices, &wanted),
                }
            }
            if self.plan.window.is_empty() {
                runs.extend(starts, place.updates, steps.updates);
                continue;
            }
            for (i, &start) in starts.iter().enumerate().filter(|(_, start)| **start < DROPPED) {
                self.runs(0, start, place.updates + i * steps.updates, runs);
            }
        }
    }

    /// Adds what a component says to starts, which it drops where the number is not wanted.
    fn add_component<T: Bits>(&self, starts: &mut [usize], at: usize, step: usize, wanted: &Wanted) {
        let (_, bits, signed) = self.plan.index;
        let unused = 64 - bits;
        let (first, count, worth) = (wanted.range.start, wanted.range.len(), wanted.worth);
        for (i, start) in starts.iter_mut().enumerate() {
            let raw = self.indices.read::<T>(at + i * step).low() << unused;
            // Negative numbers become larger than any place.
            let number = if signed { ((raw as i64) >> unused) as usize } else { (raw >> unused) as usize };
            let is_wanted = number.wrapping_sub(first) < count;
            *start = if is_wanted { *start + number * worth } else { DROPPED };
        }
    }

    /// Notes the runs of a window from that dimension of it on.
    fn runs(&self, axis: usize, into: usize, from: usize, runs: &mut Runs) {
        match self.plan.window.get(axis) {
            None => runs.push(into, from),
            Some(steps) => {
                for i in 0..steps.extent {
                    self.runs(axis + 1, into + i * steps.inputs, from + i * steps.updates, runs);
                }
            }
        }
    }
}

/// Runs that wait to be combined.
struct Runs {
    kernel: KernelFn,
    /// The kernel's pointers; the last two are set when it is called.
    pointers: Vec<*mut u8>,
    /// Where they begin in the arrays and in the updates.
    into: [i64; RUNS],
    from: [i64; RUNS],
    count: usize,
}

impl Runs {
    fn new(scatter: &Scatter<'_>) -> Runs {
        let pointers = [&scatter.arrays[..], &[std::ptr::null_mut(); 2]].concat();
        Runs { kernel: scatter.kernel, pointers, into: [0; RUNS], from: [0; RUNS], count: 0 }
    }

    fn push(&mut self, into: usize, from: usize) {
        self.make_room(1);
        (self.into[self.count], self.from[self.count]) = (into as i64, from as i64);
        self.count += 1;
    }

    /// Adds the starts of up to [`BLOCK`] runs that are not dropped; the updates are `step` elements from each other.
    fn extend(&mut self, starts: &[usize], from: usize, step: usize) {
        self.make_room(starts.len());
        for (i, &start) in starts.iter().enumerate() {
            // Written in any case, counted where it stays: no branch.
            (self.into[self.count], self.from[self.count]) = (start as i64, (from + i * step) as i64);
            self.count += usize::from(start < DROPPED);
        }
    }

    fn make_room(&mut self, count: usize) {
        if self.count + count > RUNS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let [.., into, from] = &mut self.pointers[..] {
            *into = self.into.as_mut_ptr().cast();
            *from = self.from.as_mut_ptr().cast();
        }
        // SAFETY: the kernel takes these pointers, and as many runs as are in the lists, each of which lies in the arrays:
        // windows that do not fit were dropped. Nobody else writes these elements: see `Scatter::part`.
        unsafe { (self.kernel)(self.pointers.as_ptr(), 0, self.count as i64) };
        self.count = 0;
    }
}
