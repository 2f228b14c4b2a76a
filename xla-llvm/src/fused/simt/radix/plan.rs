//! Radix sort (LSD) of rows whose comparator only compares keys of one array's elements. Each digit, from the lowest
//! one on, is sorted by a stable counting sort.
//!
//! No block waits for another one: one launch computes the histogram of each tile, one the prefix sums over tiles, and
//! one moves the elements. The elements of all arrays move unchanged; keys are computed from elements whenever they are
//! needed.

use xla_hlo::ops::Op;
use xla_hlo::{CompId, ElementType, Result};

use super::{DIGIT_BITS, DIGITS};
use crate::emitter::Emitter;
use crate::fused::kernel::Kernel;
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::simt::sort::SortPlan;
use crate::fused::source::KernelSource;
use crate::fused::tuning::radix_sort::{
    BUSY_BLOCKS, BYTE_SECONDS, DIGIT_SECONDS, ELEMENT_SECONDS, MERGE_SECONDS, PER_THREAD, SUM_SECONDS, THREADS, WIDEST,
};
use crate::lanes::Scalar;
use crate::target::Target;
use xla_passes::analysis::element_order::{Key, key_of_comparator};

/// Upper bound of the number of elements: positions are computed in 32 bits.
const MOST: u64 = 1 << 31;
/// Type of a digit's counter.
pub(super) const COUNTER: Scalar = Scalar::Int(32);

/// Plan of a radix sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadixSortPlan {
    pub(super) types: Vec<ElementType>,
    /// Array whose elements have the keys (`keys`), and the key's definition (`key`).
    pub(super) keys: usize,
    pub(super) key: Key,
    /// Number of elements per row.
    pub(super) length: u64,
    pub(super) rows: u64,
    /// Number of elements per thread.
    pub per_thread: u64,
    pub(super) comparator: CompId,
}

/// Launch of a radix sort. [`Count`](RadixPhase::Count) and [`Move`](RadixPhase::Move) take one number, the bit where
/// the digit begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadixPhase {
    /// Counts the digits of each tile. The words are addresses of the array of keys and of the counts.
    Count,
    /// Computes prefix sums of the counts over the tiles of a row, and stores the totals. The words are addresses of
    /// the counts and the totals.
    Offsets,
    /// Moves elements. The words are addresses of the arrays to read and of those to write, of the counts and the
    /// totals.
    Move,
}

impl KernelPlan for RadixSortPlan {
    type Phase = RadixPhase;

    const NAME: &'static str = "radix-sort";
    const READS_SOURCE: bool = false;

    /// Returns the plan for a sort of arrays. `None` if the comparator is not a comparison of keys, the elements of a
    /// row are not contiguous, or the merge sort is faster.
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<RadixSortPlan> {
        let Op::Sort(sort) = source.instruction().op() else { return None };
        let (arrays, merge) = (source.input_shapes()?, SortPlan::new(source, target)?);
        let first = arrays.first().filter(|first| first.is_static())?;
        let (keys, key) = key_of_comparator(source.module, sort.computation)?;
        let types: Vec<ElementType> = arrays.iter().map(|array| array.element_type()).collect();
        let dims = first.dims();
        let (length, count) = (*dims.get(sort.dimension)? as u64, first.element_count() as u64);
        let is_innermost = dims[sort.dimension + 1..].iter().all(|&d| d == 1);
        if !is_innermost || count == 0 || count >= MOST {
            return None;
        }
        let fills = |&per_thread: &u64| count / (THREADS * per_thread) >= BUSY_BLOCKS;
        let per_thread = PER_THREAD.into_iter().find(fills).unwrap_or(PER_THREAD[PER_THREAD.len() - 1]);
        let plan =
            RadixSortPlan { types, keys, key, length, rows: count / length, per_thread, comparator: sort.computation };
        (plan.seconds() < plan.merge_seconds(&merge)).then_some(plan)
    }

    fn phases(&self) -> Vec<RadixPhase> {
        vec![RadixPhase::Count, RadixPhase::Offsets, RadixPhase::Move]
    }

    fn commands(&self, _: &KernelSource<'_>) -> Vec<PlanCommand<RadixPhase>> {
        let (count, digits) = (self.types.len(), self.digits().collect::<Vec<u32>>());
        let first = self.between().count();
        let [counts, totals] = [first, first + 1].map(PlanArgument::Scratch);
        // The last launch writes the results; those before it alternate.
        let place = |launches_left: usize, array: usize| match launches_left {
            left if left == digits.len() => PlanArgument::Array(array),
            left if left.is_multiple_of(2) => PlanArgument::Array(count + array),
            _ => PlanArgument::Scratch(array),
        };
        let of_digit = |(done, &begin): (usize, &u32)| {
            let left = digits.len() - done;
            let begin = PlanArgument::Number(begin.into());
            let from = (0..count).map(|array| place(left, array));
            let to = (0..count).map(|array| place(left - 1, array));
            [
                PlanCommand::launch(RadixPhase::Count, [place(left, self.keys), counts, begin]),
                PlanCommand::launch(RadixPhase::Offsets, [counts, totals]),
                PlanCommand::launch(RadixPhase::Move, from.chain(to).chain([counts, totals, begin])),
            ]
        };
        digits.iter().enumerate().flat_map(of_digit).collect()
    }

    /// Returns the sizes of the arrays between launches, then of the counts and of the totals.
    fn scratch_bytes(&self) -> Vec<usize> {
        let totals = self.rows * DIGITS * u64::from(COUNTER.bits() / 8);
        self.between().chain([totals * self.tiles(), totals].map(|bytes| bytes as usize)).collect()
    }

    fn describe(&self, phase: RadixPhase) -> String {
        format!("radix sort {phase:?}")
    }

    fn emit(&self, source: &KernelSource<'_>, phase: RadixPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        self.emit_phase(source.module, phase, emitter, name)
    }
}

impl RadixSortPlan {
    /// Estimates the time of all launches in seconds.
    fn seconds(&self) -> f64 {
        // The last tile of a row may be nearly empty.
        let count = (self.rows * self.tiles() * self.tile()) as f64;
        let bytes = (2 * self.bytes() + self.types[self.keys].byte_width() as u64) as f64;
        let moving = count * ELEMENT_SECONDS.max(bytes * BYTE_SECONDS);
        let sums = (self.rows * DIGITS * self.tiles().div_ceil(THREADS)) as f64 * SUM_SECONDS;
        self.digits().count() as f64 * (DIGIT_SECONDS + moving + sums)
    }

    /// Estimates the time of the merge sort in seconds.
    fn merge_seconds(&self, merge: &SortPlan) -> f64 {
        let (count, bytes) = ((self.rows * self.length) as f64, (2 * self.bytes()) as f64);
        let launches = 1.0 + merge.merges().count() as f64;
        launches * (MERGE_SECONDS + count * ELEMENT_SECONDS.max(bytes * BYTE_SECONDS))
    }

    /// Returns the size in bytes of an element, summed over all arrays.
    fn bytes(&self) -> u64 {
        self.types.iter().map(|ty| ty.byte_width() as u64).sum()
    }

    /// Returns the first bit of each digit, in the order of the launches.
    fn digits(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.key.bits).step_by(DIGIT_BITS as usize)
    }

    /// Returns the number of elements per block.
    pub(super) fn tile(&self) -> u64 {
        THREADS * self.per_thread
    }

    /// Returns the number of tiles per row.
    pub(super) fn tiles(&self) -> u64 {
        self.length.div_ceil(self.tile())
    }

    /// Returns the width in bits of the widest element over all arrays; complex elements count as their real part.
    pub(super) fn widest(&self) -> u32 {
        let widths = self.types.iter().map(|ty| ty.real_part().byte_width() as u64);
        8 * widths.max().unwrap_or(WIDEST).min(WIDEST) as u32
    }

    /// Returns the size in bytes of the arrays between launches; none if there is only one digit.
    fn between(&self) -> impl Iterator<Item = usize> {
        let count = (self.rows * self.length) as usize;
        let is_needed = self.key.bits > DIGIT_BITS;
        self.types.iter().filter(move |_| is_needed).map(move |ty| count * ty.byte_width())
    }

    pub(super) fn addresses(&self, phase: RadixPhase) -> usize {
        match phase {
            RadixPhase::Count | RadixPhase::Offsets => 2,
            RadixPhase::Move => 2 * self.types.len() + 2,
        }
    }
}

impl RadixPhase {
    pub(super) fn numbers(self) -> usize {
        match self {
            RadixPhase::Count | RadixPhase::Move => 1,
            RadixPhase::Offsets => 0,
        }
    }
}
