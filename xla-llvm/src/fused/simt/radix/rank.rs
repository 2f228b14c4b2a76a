//! Moves a tile's elements to their positions by one digit.
//!
//! Each warp counts digits in the order of its elements. Ballots find the lanes with an equal digit, so that an
//! element's rank is the warp's count so far plus the number of earlier lanes with that digit. The tile is sorted in
//! shared memory first, so that adjacent threads write adjacent elements of a digit (coalesced stores).

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Result};

use super::count::{Tile, digit, key_bits};
use super::plan::{COUNTER, RadixSortPlan};
use super::{DIGIT_BITS, DIGITS};
use crate::fused::emitter::FusedEmitter;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::tuning::radix_sort::THREADS;
use crate::lanes::{Lanes, Scalar};
use crate::simt::WARP;

/// Number of warps per block.
const WARPS: u64 = THREADS / WARP as u64;

/// Block that moves a tile.
pub(super) struct Mover<'a, 'e, 'ctx> {
    plan: &'a RadixSortPlan,
    member: BlockThread<'e, 'ctx>,
    tile: Tile<'e, 'ctx>,
    /// First bit of the digit.
    begin: Lanes<'e, 'ctx>,
    /// Counts of the digits in earlier tiles, and in the whole row.
    counts: PointerValue<'ctx>,
    totals: PointerValue<'ctx>,
    /// Shared memory: a warp's count of each digit, later the position in the tile of its first element with that
    /// digit.
    counters: PointerValue<'ctx>,
    /// Distance from an element's position in the sorted tile to that in its row, for each digit.
    moves: PointerValue<'ctx>,
    /// One number per warp.
    sums: PointerValue<'ctx>,
    /// One number per element of the tile.
    elements: PointerValue<'ctx>,
}

/// Numbers that a thread moves, one per element.
struct Numbers<'ctx> {
    array: PointerValue<'ctx>,
    to: PointerValue<'ctx>,
    bits: Scalar,
    /// Numbers per element (two if complex), and the index of this one.
    parts: i64,
    part: i64,
}

impl<'ctx> Numbers<'ctx> {
    /// Returns the numbers of an array's elements.
    fn of(ty: ElementType, [array, to]: [PointerValue<'ctx>; 2]) -> impl Iterator<Item = Numbers<'ctx>> {
        let bits = Scalar::Int(8 * ty.real_part().byte_width() as u32);
        let parts = if ty.is_complex() { 2 } else { 1 };
        (0..parts).map(move |part| Numbers { array, to, bits, parts, part })
    }

    /// Returns the position of an element's number.
    fn at<'e>(&self, element: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        element.zext(64) * self.parts + self.part
    }
}

impl<'a, 'e, 'ctx> Mover<'a, 'e, 'ctx> {
    pub fn new(
        plan: &'a RadixSortPlan,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        [counts, totals]: [PointerValue<'ctx>; 2],
        begin: Lanes<'e, 'ctx>,
    ) -> Result<Self> {
        let emitter = s.emitter;
        Ok(Mover {
            plan,
            member: BlockThread::new(emitter, THREADS)?,
            tile: Tile::new(plan, emitter)?,
            begin,
            counts,
            totals,
            counters: emitter.shared_array(COUNTER, WARPS * DIGITS)?,
            moves: emitter.shared_array(COUNTER, DIGITS)?,
            sums: emitter.shared_array(Scalar::Int(64), WARPS)?,
            elements: emitter.shared_array(Scalar::Int(plan.widest()), plan.tile())?,
        })
    }

    /// Emits the body of the kernel that moves elements, from the arrays `from` to the arrays `to`.
    pub fn run(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, [from, to]: [&[PointerValue<'ctx>]; 2]) -> Result<()> {
        let (emitter, plan, tile) = (s.emitter, self.plan, self.tile);
        let (keys, bits) = (from[plan.keys], key_bits(plan));
        // A warp has contiguous elements, in the order of iterations and lanes.
        let own = self.member.warp * (plan.per_thread * u64::from(WARP)) as i64 + self.member.lane;
        let places: Vec<_> = (0..plan.per_thread).map(|turn| own + (turn * u64::from(WARP)) as i64).collect();
        let addresses: Vec<_> = places.iter().map(|place| tile.first + place.umin(tile.count - 1)).collect();
        let load = |at: &Lanes<'e, 'ctx>| emitter.load_lanes(keys, at.zext(64), bits, 1, None);
        let elements: Vec<_> = addresses.iter().map(load).collect();
        let exist: Vec<_> = places.iter().map(|place| place.ult(tile.count)).collect();
        let digits: Vec<_> = elements.iter().map(|&element| digit(plan, element, self.begin)).collect();
        let ranks = self.ranks(s, &digits, &exist)?;
        self.starts(s)?;
        let place = |(&digit, rank)| rank + self.load(s, self.counters, self.counter(digit));
        let places: Vec<_> = digits.iter().zip(ranks).map(place).collect();

        self.exchange(s, &elements, &places, &exist)?;
        // In the order of the sorted tile, a thread has every `THREADS`-th element.
        let turns = (0..plan.per_thread).map(|turn| self.member.thread + (turn * THREADS) as i64);
        let slots: Vec<_> = turns.map(|slot| (slot.umin(tile.count - 1), slot.ult(tile.count))).collect();
        let sorted: Vec<_> =
            slots.iter().map(|&(slot, _)| emitter.load_lanes(self.elements, slot, bits, 1, None)).collect();
        let mut targets = Vec::with_capacity(slots.len());
        for (&(slot, _), &element) in slots.iter().zip(&sorted) {
            targets.push(slot + self.load(s, self.moves, digit(plan, element, self.begin)));
        }
        for ((&target, &(_, exists)), &element) in targets.iter().zip(&slots).zip(&sorted) {
            self.store(s, exists, (to[plan.keys], target.zext(64)), element)?;
        }
        for array in (0..plan.types.len()).filter(|&array| array != plan.keys) {
            for numbers in Numbers::of(plan.types[array], [from[array], to[array]]) {
                let load =
                    |&at: &Lanes<'e, 'ctx>| emitter.load_lanes(numbers.array, numbers.at(at), numbers.bits, 1, None);
                let loaded: Vec<_> = addresses.iter().map(load).collect();
                emitter.barrier()?;
                self.exchange(s, &loaded, &places, &exist)?;
                for (&target, &(slot, exists)) in targets.iter().zip(&slots) {
                    let number = emitter.load_lanes(self.elements, slot, numbers.bits, 1, None);
                    self.store(s, exists, (numbers.to, numbers.at(target)), number)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the rank of each of a thread's elements: the number of earlier elements of the warp with an equal digit.
    /// Afterwards the warp's counters hold the count of each digit.
    fn ranks(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        digits: &[Lanes<'e, 'ctx>],
        exist: &[Lanes<'e, 'ctx>],
    ) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let (emitter, lane) = (s.emitter, self.member.lane);
        for turn in 0..DIGITS / u64::from(WARP) {
            let at = self.counter(lane + (turn * u64::from(WARP)) as i64);
            emitter.store_lanes(at.int(0), self.counters, at, None);
        }
        emitter.warp_barrier()?;
        let before = (lane.int(1) << lane) - 1;
        let mut ranks = Vec::with_capacity(digits.len());
        for (&digit, &exists) in digits.iter().zip(exist) {
            let mut peers = emitter.ballot(exists)?;
            for bit in 0..i64::from(DIGIT_BITS) {
                let is_set = (digit & (1 << bit)).ne(0);
                let votes = emitter.ballot(is_set)?;
                peers = peers & is_set.select(votes, !votes);
            }
            let at = self.counter(digit);
            let known = emitter.load_lanes(self.counters, at, COUNTER, 1, None);
            let earlier = peers & before;
            emitter.warp_barrier()?;
            // The first lane of those with an equal digit adds their number to the counter.
            s.when(exists & earlier.eq(0), &[], |_| {
                emitter.store_lanes(known + peers.popcount(), self.counters, at, None);
                Ok(Vec::new())
            })?;
            emitter.warp_barrier()?;
            ranks.push(known + earlier.popcount());
        }
        Ok(ranks)
    }

    /// Converts the warps' counts to the positions in the tile where their elements of each digit begin, and computes
    /// the distance that elements of a digit move from the tile to the row. One thread per digit.
    fn starts(&self, s: &mut FusedEmitter<'e, 'ctx, '_>) -> Result<()> {
        let (emitter, tile, digit) = (s.emitter, self.tile, self.member.thread);
        let counter = |warp: u64| digit + (warp * DIGITS) as i64;
        emitter.barrier()?;
        let own: Vec<_> = (0..WARPS).map(|warp| self.load(s, self.counters, counter(warp))).collect();
        let here = own.iter().copied().reduce(|a, b| a + b).unwrap_or(digit);
        let total = emitter.load_lanes(self.totals, tile.total(digit), COUNTER, 1, None);
        let earlier = emitter.load_lanes(self.counts, tile.counter(self.plan, digit), COUNTER, 1, None);
        // Both prefix sums are computed at once, in the two halves of 64 bits; neither overflows its half.
        let both = (here.zext(64) << i64::from(COUNTER.bits())) | total.zext(64);
        let [before, _] = self.member.sums(s, both, self.sums)?;
        let mut start = before.lshr(i64::from(COUNTER.bits())).trunc(COUNTER.bits());
        let in_row = before.trunc(COUNTER.bits()) + earlier + tile.row_first;
        emitter.store_lanes(in_row - start, self.moves, digit, None);
        for (warp, count) in (0..).zip(own) {
            emitter.store_lanes(start, self.counters, counter(warp), None);
            start = start + count;
        }
        emitter.barrier()
    }

    /// Stores numbers of the thread's elements at their sorted positions in shared memory. Ends with a barrier.
    fn exchange(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        numbers: &[Lanes<'e, 'ctx>],
        places: &[Lanes<'e, 'ctx>],
        exist: &[Lanes<'e, 'ctx>],
    ) -> Result<()> {
        for ((&number, &place), &exists) in numbers.iter().zip(places).zip(exist) {
            self.store(s, exists, (self.elements, place), number)?;
        }
        s.emitter.barrier()
    }

    /// Stores a number of an element if it exists.
    fn store(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        exists: Lanes<'e, 'ctx>,
        (array, at): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        number: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        s.when(exists, &[], |s| {
            s.emitter.store_lanes(number, array, at, None);
            Ok(Vec::new())
        })?;
        Ok(())
    }

    fn load(&self, s: &FusedEmitter<'e, 'ctx, '_>, array: PointerValue<'ctx>, at: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        s.emitter.load_lanes(array, at, COUNTER, 1, None)
    }

    /// Returns the position of the warp's counter of a digit.
    fn counter(&self, digit: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        self.member.warp * DIGITS as i64 + digit
    }
}
