//! Scatter: finds where windows go, and hands their runs to a kernel that combines them.
//!
//! Windows are taken in row-major order. Threads share them so that no element is written by two, and each element sees its
//! updates in that order whatever the number of threads.
#![expect(unsafe_code, reason = "works on raw buffers of generated code, by a kernel of generated code")]

use std::ops::Range;

use super::KernelFn;
use super::line::Line;
use super::pool::parallel_for;
use crate::scatter_plan::{Apart, ScatterPlan};

/// Elements of the updates that are worth several threads.
const PARALLEL: usize = 1 << 14;
/// Runs that are handed to the kernel at once.
const RUNS: usize = 1024;
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

/// Where a window is looked up and where its update begins; `inputs` is what is known of its place without looking.
#[derive(Clone, Copy, Default)]
struct Place {
    indices: usize,
    updates: usize,
    inputs: usize,
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
        let Some(steps) = self.plan.batch.get(axis) else {
            return self.window(place, part, runs);
        };
        let is_last = axis + 1 == self.plan.batch.len();
        for i in part.batch[axis].clone() {
            let place = Place {
                indices: place.indices + i * steps.indices,
                updates: place.updates + i * steps.updates,
                inputs: place.inputs + i * steps.inputs,
            };
            if is_last {
                self.window(place, part, runs);
            } else {
                self.windows(axis + 1, place, part, runs);
            }
        }
    }

    #[inline]
    fn window(&self, place: Place, part: &Part, runs: &mut Runs) {
        let mut into = place.inputs;
        for (component, range) in self.plan.components.iter().zip(&part.components) {
            let at = self.index(place.indices + component.offset);
            if !range.contains(&at) {
                return;
            }
            into += at * component.inputs;
        }
        self.runs(0, into, place.updates, runs);
    }

    /// An index; negative ones are greater than any place.
    #[inline]
    fn index(&self, at: usize) -> usize {
        let (bytes, bits, signed) = self.plan.index;
        let raw = match bytes {
            1 => u64::from(self.indices.read::<u8>(at)),
            2 => u64::from(self.indices.read::<u16>(at)),
            4 => u64::from(self.indices.read::<u32>(at)),
            _ => self.indices.read::<u64>(at),
        };
        let unused = 64 - bits;
        (if signed { ((raw << unused) as i64 >> unused) as u64 } else { raw << unused >> unused }) as usize
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
    into: Vec<i64>,
    from: Vec<i64>,
}

impl Runs {
    fn new(scatter: &Scatter<'_>) -> Runs {
        let pointers = [&scatter.arrays[..], &[std::ptr::null_mut(); 2]].concat();
        let [into, from] = [(); 2].map(|()| Vec::with_capacity(RUNS));
        Runs { kernel: scatter.kernel, pointers, into, from }
    }

    #[inline]
    fn push(&mut self, into: usize, from: usize) {
        self.into.push(into as i64);
        self.from.push(from as i64);
        if self.into.len() == RUNS {
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
        unsafe { (self.kernel)(self.pointers.as_ptr(), 0, self.into.len() as i64) };
        self.into.clear();
        self.from.clear();
    }
}
