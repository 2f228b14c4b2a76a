//! Scan of a tile of a fiber by one block, whose threads hold all its elements: everything is read once.
//!
//! This is a deterministic variant of decoupled look-back. A block publishes the total of its tile as soon as it has
//! computed it. Tiles form groups, with one tile for each thread of a block. The block of a tile waits for the totals
//! of the earlier tiles of its group, and for the prefix of the group, which the block of the last tile of the previous
//! group publishes. The prefix of a tile is thus always combined in the same order, and a sum of floats has the same
//! bits in every run. The chain of blocks that wait for each other has one block per group. Tickets assign tiles to
//! blocks in the order of their start, so that no block waits for one that has not started (no deadlock).

use inkwell::values::PointerValue;
use xla_hlo::Result;

use crate::elemental::{self, Value};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::simt::scan::block::BlockScan;
use crate::fused::simt::scan::state::ScanState;
use crate::lanes::Lanes;

/// Tile, with the state words through which its block communicates.
struct Tile<'e, 'ctx> {
    state: ScanState,
    words: PointerValue<'ctx>,
    fiber: Lanes<'e, 'ctx>,
    /// Index of the tile in the fiber.
    number: Lanes<'e, 'ctx>,
    group: Lanes<'e, 'ctx>,
    /// Index of the tile in the group.
    place: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx, 'm> BlockScan<'_, 'e, 'ctx> {
    /// Stores the running totals of a tile, given the index of the fiber and that of the tile in it.
    pub fn tile(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        result: PointerValue<'ctx>,
        (state, words): (ScanState, PointerValue<'ctx>),
        [fiber, tile]: [AffineExpr; 2],
    ) -> Result<()> {
        let plan = self.plan;
        let width = plan.width as u32;
        let neutral = self.neutral(s)?;
        let turn = plan.threads * plan.width;
        let begin = s.number_of(&tile.clone().scaled((turn * plan.turns) as i64))?;
        let begin = s.lanes_of(begin) + self.thread * plan.width as i64;
        let firsts: Vec<_> = (0..plan.turns).map(|number| begin + (number * turn) as i64).collect();
        let read = firsts.iter().map(|&first| self.elements(s, first, neutral)).collect::<Result<Vec<_>>>()?;
        let within = read.into_iter().map(|x| s.scan_register(plan.combiner, x, width)).collect::<Result<Vec<_>>>()?;
        let totals: Vec<_> = within.iter().map(|within| within.slice(width - 1, 1)).collect();
        let (before, all) = self.before_each(s, &totals, neutral)?;
        let tile = Tile::new(s, (state, words), [&fiber, &tile])?;
        let earlier = self.earlier(s, &tile, all, neutral)?;
        let target = self.target(s, result)?;
        for ((first, within), before) in firsts.into_iter().zip(within).zip(before) {
            let before = self.pair(s, earlier, before)?.splat(width);
            let running = self.pair(s, before, within)?;
            self.store(s, &target, first, running)?;
        }
        Ok(())
    }

    /// Publishes the tile's total, and returns the exclusive prefix of the tile.
    fn earlier(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile<'e, 'ctx>,
        all: Value<'e, 'ctx>,
        neutral: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let (state, words, thread) = (tile.state, tile.words, self.thread);
        let is_first = thread.eq(0);
        s.when(is_first, &[], |s| {
            state.tell(s.emitter, words, state.total_at(tile.fiber, tile.number), all).map(|()| Vec::new())
        })?;
        // The first thread waits for the group's prefix, the next ones for the totals of the tiles of the group.
        let starts = is_first & tile.group.eq(0);
        let is_wanted = thread.ule(tile.place) & starts.eq(0);
        let total = state.total_at(tile.fiber, tile.number - tile.place + thread - 1);
        let at = is_first.select(state.group_at(tile.fiber, tile.group), total);
        let told = state.wait(s.emitter, (words, at), is_wanted, all);
        let told = elemental::select_lanes(is_wanted, told, neutral);
        let start = self.start(s)?;
        let [_, earlier] = self.before(s, elemental::select_lanes(starts, start, told), neutral)?;
        let ends_group = is_first & tile.place.eq(state.group as i64 - 1) & tile.number.lt(state.tiles as i64 - 1);
        let through = self.pair(s, earlier, all)?;
        s.when(ends_group, &[], |s| {
            let at = state.group_at(tile.fiber, tile.group + 1);
            state.tell(s.emitter, words, at, through).map(|()| Vec::new())
        })?;
        Ok(earlier)
    }
}

impl<'e, 'ctx> Tile<'e, 'ctx> {
    fn new(
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        (state, words): (ScanState, PointerValue<'ctx>),
        [fiber, tile]: [&AffineExpr; 2],
    ) -> Result<Self> {
        let (group, place) = s.divide(tile, state.group as i64)?;
        let mut lanes = |at: &AffineExpr| s.number_of(at).map(|number| s.lanes_of(number));
        let [fiber, number, group, place] = [lanes(fiber)?, lanes(tile)?, lanes(&group)?, lanes(&place)?];
        Ok(Tile { state, words, fiber, number, group, place })
    }
}
