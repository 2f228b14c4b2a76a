//! Radix selection of the best items of a row, or of a chunk of a row, by a block.
//!
//! An item is an element's key with its position below it, so that all items differ and the first of equal elements is
//! the best. For each digit, from the highest on, a block counts the items that match the digits found so far, and
//! finds the next digit of the `k`-th item. It stops when the items up to that one fit into shared memory, where they
//! are sorted. At the latest, this is when all digits are found.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{CompId, Error, Module, Result};

use super::plan::{TopKPhase, TopKPlan, lacks_addresses};
use super::sorted::{Slots, joined, words};
use crate::emitter::Emitter;
use crate::fused::core::element_key::key_lanes;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::range::Range;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::simt::radix::histogram::Histogram;
use crate::fused::simt::radix::{DIGIT_BITS, DIGITS};
use crate::fused::tuning::top_k::{LEAST_SLOTS, MOST_THREADS, PER_THREAD, READ};
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Atomic, Register, WARP};

/// Width in bits of a position in an item.
const PLACE: u32 = 32;
/// Minimum number of threads per block.
const LEAST_THREADS: u64 = 64;
/// Number of digits per lane.
const PER_LANE: u64 = DIGITS / WARP as u64;

/// Arrays and sizes of a launch.
pub(super) struct Selection<'a, 'ctx> {
    plan: &'a TopKPlan,
    phase: TopKPhase,
    operand: PointerValue<'ctx>,
    /// Results: values and positions.
    results: Option<[PointerValue<'ctx>; 2]>,
    /// Items of the chunks.
    items: Option<PointerValue<'ctx>>,
    threads: u64,
    /// Maximum number of items per block.
    most: u64,
    /// Number of items that a block sorts.
    slots: u64,
}

/// Block and its items. Numbers have 64 bits, items 64 or 128.
struct Block<'a, 'e, 'ctx> {
    of: &'a Selection<'a, 'ctx>,
    member: BlockThread<'e, 'ctx>,
    /// Index of the block's row.
    row: Lanes<'e, 'ctx>,
    /// Index of the first element in the operand, or of the first item in the items of all chunks.
    first: Lanes<'e, 'ctx>,
    /// Position of that element in its row.
    place: Lanes<'e, 'ctx>,
    /// Number of elements or items.
    count: Lanes<'e, 'ctx>,
    slots: Slots<'ctx>,
}

/// State of the search for the `k`-th item.
#[derive(Clone, Copy)]
struct Found<'e, 'ctx> {
    /// Least and greatest item with the digits found so far.
    least: Lanes<'e, 'ctx>,
    greatest: Lanes<'e, 'ctx>,
    /// Number of items below these, and number of items with these digits; 32 bits.
    below: Lanes<'e, 'ctx>,
    inside: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Found<'e, 'ctx> {
    fn raws(self) -> Vec<BasicValueEnum<'ctx>> {
        [self.least, self.greatest, self.below, self.inside].map(Lanes::raw).to_vec()
    }

    fn from_raws(emitter: &'e Emitter<'ctx>, raws: &[BasicValueEnum<'ctx>]) -> Result<Self> {
        let &[least, greatest, below, inside] = raws else {
            return Err(Error::internal(format!("loop carries {} values instead of 4", raws.len())));
        };
        let [least, greatest, below, inside] = [least, greatest, below, inside].map(|raw| emitter.lanes(raw));
        Ok(Found { least, greatest, below, inside })
    }
}

impl<'a, 'ctx> Selection<'a, 'ctx> {
    pub fn new(plan: &'a TopKPlan, phase: TopKPhase, pointers: &[PointerValue<'ctx>]) -> Result<Self> {
        let (operand, results, items) = match (phase, pointers) {
            (TopKPhase::Rows, &[operand, values, places]) => (operand, Some([values, places]), None),
            (TopKPhase::Chunks, &[operand, items]) => (operand, None, Some(items)),
            (TopKPhase::Merge, &[operand, values, places, items]) => (operand, Some([values, places]), Some(items)),
            _ => return Err(lacks_addresses()),
        };
        let most = if phase == TopKPhase::Merge { plan.chunks * plan.count } else { plan.chunk };
        let slots = (2 * plan.count).next_power_of_two().max(LEAST_SLOTS).min(most.next_power_of_two());
        let threads = (most / PER_THREAD).max(slots / 2).next_power_of_two().clamp(LEAST_THREADS, MOST_THREADS);
        Ok(Selection { plan, phase, operand, results, items, threads, most, slots })
    }

    /// Emits the body of a top-k kernel by radix selection.
    pub fn emit(&self, (module, computation): (&Module, CompId), emitter: &Emitter<'ctx>) -> Result<Launch> {
        let plan = self.plan;
        let mut s = FusedEmitter::new(emitter, module, computation)?;
        let member = BlockThread::new(emitter, self.threads)?;
        let block = emitter.register(Register::Block)?.zext(64);
        let chunks = if self.phase == TopKPhase::Chunks { plan.chunks } else { 1 };
        let (row, chunk) = (block.udiv(chunks as i64), block.urem(chunks as i64));
        let place = chunk * plan.chunk as i64;
        let (first, count) = match self.phase {
            TopKPhase::Merge => (row * self.most as i64, row.int(self.most as i64)),
            _ => (row * plan.length as i64 + place, (-place + plan.length as i64).smin(plan.chunk as i64)),
        };
        let slots = Slots::new(emitter, plan.item_bits(), self.slots)?;
        let here = Block { of: self, member, row, first, place, count, slots };
        here.fill(&mut s)?;
        here.slots.sort(&mut s, member)?;
        here.store(&mut s, block)?;
        Ok(Launch { work_items: plan.rows * chunks, block: Some(self.threads as u32) })
    }

    /// Returns the number of digits of an item's key, and of its position.
    fn digits(&self) -> [i64; 2] {
        let place = u64::BITS - self.plan.length.leading_zeros();
        [self.plan.key.bits, place].map(|bits| bits.div_ceil(DIGIT_BITS).into())
    }
}

impl<'e, 'ctx> Block<'_, 'e, 'ctx> {
    /// Fills the slots with the best items in any order, and the remaining slots with the last possible item. Ends with
    /// a barrier.
    fn fill(&self, s: &mut FusedEmitter<'e, 'ctx, '_>) -> Result<()> {
        let (emitter, member, slots) = (s.emitter, self.member, self.slots.count);
        let last = self.last(s);
        if self.of.most <= slots {
            member.each(s, slots, &mut |s, at| {
                let number = at.zext(64);
                let item = s.when(number.lt(self.count), &[last.raw()], |s| Ok(vec![self.item(s, number)?.raw()]))?;
                let item = item.first().map_or(last, |&item| emitter.lanes(item));
                self.slots.set(emitter, at, item);
                Ok(())
            })?;
            return emitter.barrier();
        }
        let taken = emitter.shared_array(Scalar::Int(32), 1)?;
        let first = member.thread.int(0);
        s.when(member.thread.eq(0), &[], |_| {
            emitter.store_lanes(first, taken, first, None);
            Ok(Vec::new())
        })?;
        let found = self.last_wanted(s)?;
        self.each_item(s, &mut |s, item, is_there| {
            s.when(is_there & item.ule(found.greatest), &[], |_| {
                let at = emitter.atomic_fetch(Atomic::Add, taken, first, first.int(1))?;
                self.slots.set(emitter, at, item);
                Ok(Vec::new())
            })?;
            Ok(())
        })?;
        let count = found.below + found.inside;
        member.each(s, slots, &mut |s, at| {
            s.when(at.uge(count), &[], |_| {
                self.slots.set(emitter, at, last);
                Ok(Vec::new())
            })?;
            Ok(())
        })?;
        emitter.barrier()
    }

    /// Finds digits of the `k`-th item, as long as there are too many items up to it. Always executes a barrier.
    fn last_wanted(&self, s: &mut FusedEmitter<'e, 'ctx, '_>) -> Result<Found<'e, 'ctx>> {
        let (emitter, slots) = (s.emitter, self.slots.count as i64);
        let histogram = Histogram::new(emitter)?;
        let shared = emitter.shared_array(Scalar::Int(32), 3)?;
        let last = self.last(s);
        let none = self.member.thread.int(0);
        let found = Found { least: last.int(0), greatest: last, below: none, inside: self.count.trunc(32) };
        emitter.barrier()?;
        // Digits of the key are above the digits of the position, with a gap between them.
        let [key_digits, place_digits] = self.of.digits();
        let all = key_digits + place_digits;
        let turns = s.full_range(all as u64, 1);
        let found = s.for_each(turns, found.raws(), &mut |s, turn, carried| {
            let found = Found::from_raws(emitter, carried)?;
            let turn = s.number_of(&AffineExpr::symbol(turn))?;
            let turn = s.lanes_of(turn);
            let begin = turn.lt(key_digits).select(turn.int(key_digits - 1) - turn, turn.int(all - 1) - turn);
            let begin = begin * i64::from(DIGIT_BITS) + turn.lt(key_digits).select(turn.int(PLACE.into()), 0);
            let is_more = (found.below + found.inside).ugt(slots);
            s.when(is_more, carried, |s| Ok(self.next_digit(s, found, begin, histogram, shared)?.raws()))
        })?;
        Found::from_raws(emitter, &found)
    }

    /// Finds the digit of the `k`-th item that begins at bit `begin`.
    fn next_digit(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        found: Found<'e, 'ctx>,
        begin: Lanes<'e, 'ctx>,
        histogram: Histogram<'ctx>,
        shared: PointerValue<'ctx>,
    ) -> Result<Found<'e, 'ctx>> {
        let (emitter, member) = (s.emitter, self.member);
        let begin = begin.zext(found.least.scalar().bits());
        histogram.clear(s, member)?;
        emitter.barrier()?;
        self.each_item(s, &mut |s, item, is_there| {
            // The items match the digits found so far if the remaining bits are less than `DIGITS`.
            let digit = (item ^ found.least).lshr(begin);
            s.when(is_there & digit.ult(DIGITS as i64), &[], |_| {
                histogram.count(emitter, member, digit.trunc(32)).map(|()| Vec::new())
            })?;
            Ok(())
        })?;
        emitter.barrier()?;
        s.when(member.warp.eq(0), &[], |s| {
            let wanted = -found.below + self.of.plan.count as i64;
            self.find(s, wanted, histogram, shared).map(|()| Vec::new())
        })?;
        emitter.barrier()?;
        let numbers = [0, 1, 2].map(|at| emitter.load_lanes(shared, member.thread.int(at), Scalar::Int(32), 1, None));
        let [digit, before, inside] = numbers;
        let least = found.least | (digit.zext(found.least.scalar().bits()) << begin);
        let greatest = least | ((least.int(1) << begin) - 1);
        Ok(Found { least, greatest, below: found.below + before, inside })
    }

    /// Finds the digit of the counted item number `wanted`, from 1. Stores the digit, the number of items with lesser
    /// digits, and the number of items with this one. Executed by one warp.
    fn find(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        wanted: Lanes<'e, 'ctx>,
        histogram: Histogram<'ctx>,
        shared: PointerValue<'ctx>,
    ) -> Result<()> {
        let (emitter, member) = (s.emitter, self.member);
        let first = member.lane * PER_LANE as i64;
        let counts: Vec<_> = (0..PER_LANE).map(|digit| histogram.total(emitter, first + digit as i64)).collect();
        let own = counts.iter().copied().reduce(|a, b| a + b).unwrap_or(first);
        let mut before = member.warp_sums(emitter, own)? - own;
        for (digit, count) in (0..).zip(counts) {
            let is_here = before.ult(wanted) & wanted.ule(before + count);
            s.when(is_here, &[], |_| {
                for (at, number) in (0..).zip([first + digit, before, count]) {
                    emitter.store_lanes(number, shared, first.int(at), None);
                }
                Ok(Vec::new())
            })?;
            before = before + count;
        }
        Ok(())
    }

    /// Returns the greatest possible item.
    fn last(&self, s: &FusedEmitter<'e, 'ctx, '_>) -> Lanes<'e, 'ctx> {
        s.number(-1).sext(self.of.plan.item_bits())
    }

    /// Emits `body` for each of the thread's items, with the condition that it exists. Several loads are issued before
    /// their first use.
    fn each_item<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        let threads = self.of.threads;
        let range = Range {
            start: self.member.thread.zext(64),
            end: self.count,
            extent: Some(self.of.most),
            width: 1,
            step: READ * threads,
            whole: true,
        };
        s.for_each(range, Vec::new(), &mut |s, number, _| {
            let number = s.number_of(&AffineExpr::symbol(number))?;
            let number = s.lanes_of(number);
            let numbers: Vec<_> = (0..READ).map(|turn| number + (turn * threads) as i64).collect();
            let items: Result<Vec<_>> =
                numbers.iter().map(|&number| self.item(s, number.smin(self.count - 1))).collect();
            for (number, item) in numbers.into_iter().zip(items?) {
                body(s, item, number.lt(self.count))?;
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Returns the item with index `number`.
    fn item(&self, s: &FusedEmitter<'e, 'ctx, '_>, number: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let (plan, at) = (self.of.plan, self.first + number);
        let bits = plan.item_bits();
        if self.of.phase != TopKPhase::Merge {
            let key = key_lanes(&plan.key, self.element(s, at));
            return Ok((key.zext(bits) << i64::from(PLACE)) | (self.place + number).zext(bits));
        }
        let items = self.of.items.ok_or_else(lacks_addresses)?;
        let word = |at| s.emitter.load_lanes(items, at, Scalar::Int(64), 1, None);
        Ok(if bits == 64 { word(at) } else { joined([word(at + at), word(at + at + 1)]) })
    }

    /// Loads the bits of an element of the operand.
    fn element(&self, s: &FusedEmitter<'e, 'ctx, '_>, at: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let bits = 8 * self.of.plan.element_type.byte_width() as u32;
        s.emitter.load_lanes(self.of.operand, at, Scalar::Int(bits), 1, None)
    }

    /// Stores the first of the sorted items: as results, or as items for the launch that merges the chunks.
    fn store(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, block: Lanes<'e, 'ctx>) -> Result<()> {
        let (emitter, plan) = (s.emitter, self.of.plan);
        let to = block * plan.count as i64;
        self.member.each(s, plan.count, &mut |s, at| {
            let item = self.slots.get(emitter, at);
            let to = to + at.zext(64);
            match (self.of.results, self.of.items) {
                (Some([values, places]), _) => {
                    let place = item.trunc(PLACE);
                    let element = self.element(s, self.row * plan.length as i64 + place.zext(64));
                    emitter.store_lanes(element, values, to, None);
                    emitter.store_lanes(place, places, to, None);
                }
                (None, Some(items)) => {
                    let words = words(item);
                    for (number, word) in (0..).zip(&words) {
                        emitter.store_lanes(*word, items, to * words.len() as i64 + number, None);
                    }
                }
                (None, None) => return Err(lacks_addresses()),
            }
            Ok(())
        })
    }
}
