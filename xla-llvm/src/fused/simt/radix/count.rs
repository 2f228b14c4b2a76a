//! Histograms of the digits in the tiles of rows, and their prefix sums over tiles.
//!
//! The counts of a digit in the tiles of a row are contiguous, so that one block can sum them.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use super::DIGITS;
use super::histogram::Histogram;
use super::plan::{COUNTER, RadixSortPlan};
use crate::emitter::Emitter;
use crate::fused::core::element_key::key_lanes;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::tuning::radix_sort::THREADS;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, WARP};

/// Tile of a row that a block processes; all numbers are 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Tile<'e, 'ctx> {
    /// Index of the row, and of the tile in it.
    pub row: Lanes<'e, 'ctx>,
    pub number: Lanes<'e, 'ctx>,
    /// Indices in the array of the first element of the row, and of the tile.
    pub row_first: Lanes<'e, 'ctx>,
    pub first: Lanes<'e, 'ctx>,
    /// Number of elements of the tile.
    pub count: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Tile<'e, 'ctx> {
    pub fn new(plan: &RadixSortPlan, emitter: &'e Emitter<'ctx>) -> Result<Self> {
        let block = emitter.register(Register::Block)?;
        let (tiles, tile) = (plan.tiles() as i64, plan.tile() as i64);
        let row = block.udiv(tiles);
        let number = block - row * tiles;
        let (begin, row_first) = (number * tile, row * plan.length as i64);
        let count = (-begin + plan.length as i64).umin(tile);
        Ok(Tile { row, number, row_first, first: row_first + begin, count })
    }

    /// Returns the position of the tile's count of a digit.
    pub fn counter(&self, plan: &RadixSortPlan, digit: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        self.total(digit).zext(64) * plan.tiles() as i64 + self.number.zext(64)
    }

    /// Returns the position of the row's count of a digit.
    pub fn total(&self, digit: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        self.row * DIGITS as i64 + digit
    }
}

/// Extracts the digit that begins at bit `begin` of the key of an element, as 32 bits.
pub(super) fn digit<'e, 'ctx>(plan: &RadixSortPlan, bits: Lanes<'e, 'ctx>, begin: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let key = key_lanes(&plan.key, bits);
    let begin = begin.zext(key.scalar().bits());
    key.lshr(begin).zext(32) & (DIGITS - 1) as i64
}

/// Returns the integer type with the width of the array of keys.
pub(super) fn key_bits(plan: &RadixSortPlan) -> Scalar {
    Scalar::Int(8 * plan.types[plan.keys].byte_width() as u32)
}

/// Emits the histogram of a tile.
pub(super) fn tile<'e, 'ctx>(
    plan: &RadixSortPlan,
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    [keys, counts]: [PointerValue<'ctx>; 2],
    begin: Lanes<'e, 'ctx>,
) -> Result<()> {
    let emitter = s.emitter;
    let member = BlockThread::new(emitter, THREADS)?;
    let tile = Tile::new(plan, emitter)?;
    let histogram = Histogram::new(emitter)?;
    histogram.clear(s, member)?;
    // All loads are issued before the first element is used.
    let places: Vec<_> = (0..plan.per_thread).map(|turn| member.thread + (turn * THREADS) as i64).collect();
    let load = |&place: &Lanes<'e, 'ctx>| {
        let at = tile.first + place.umin(tile.count - 1);
        emitter.load_lanes(keys, at.zext(64), key_bits(plan), 1, None)
    };
    let elements: Vec<_> = places.iter().map(load).collect();
    emitter.barrier()?;
    for (place, element) in places.into_iter().zip(elements) {
        s.when(place.ult(tile.count), &[], |_| {
            histogram.count(emitter, member, digit(plan, element, begin)).map(|()| Vec::new())
        })?;
    }
    emitter.barrier()?;
    let total = histogram.total(emitter, member.thread);
    emitter.store_lanes(total, counts, tile.counter(plan, member.thread), None);
    Ok(())
}

/// Emits the exclusive prefix sums of the counts over the tiles of a row and digit, and stores the total.
pub(super) fn offsets<'e, 'ctx>(
    plan: &RadixSortPlan,
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    [counts, totals]: [PointerValue<'ctx>; 2],
) -> Result<()> {
    let emitter = s.emitter;
    let member = BlockThread::new(emitter, THREADS)?;
    let (block, tiles) = (emitter.register(Register::Block)?.zext(64), plan.tiles());
    let shared = emitter.shared_array(Scalar::Int(64), THREADS / u64::from(WARP))?;
    let turns = s.full_range(tiles.div_ceil(THREADS), 1);
    let sum = s.for_each(turns, vec![s.number(0).raw()], &mut |s, turn, carried| {
        let &[sum] = carried else {
            return Err(Error::internal(format!("loop carries {} values instead of 1", carried.len())));
        };
        let sum = emitter.lanes(sum);
        let turn = s.number_of(&AffineExpr::symbol(turn))?;
        let tile = s.lanes_of(turn) * THREADS as i64 + member.thread.zext(64);
        let exists = tile.lt(tiles as i64);
        let at = block * tiles as i64 + tile.smin(tiles as i64 - 1);
        let count = emitter.load_lanes(counts, at, COUNTER, 1, None);
        let count = exists.select(count, count.int(0)).zext(64);
        let [before, all] = member.sums(s, count, shared)?;
        s.when(exists, &[], |_| {
            emitter.store_lanes((sum + before).trunc(COUNTER.bits()), counts, at, None);
            Ok(Vec::new())
        })?;
        Ok(vec![(sum + all).raw()])
    })?;
    let sum = sum.first().map_or(block, |&sum| emitter.lanes(sum));
    s.when(member.thread.eq(0), &[], |_| {
        emitter.store_lanes(sum.trunc(COUNTER.bits()), totals, block, None);
        Ok(Vec::new())
    })?;
    Ok(())
}
