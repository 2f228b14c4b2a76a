//! Teams: a warp or a block whose threads fold one row together, each some of its elements.

use xla_hlo::Result;
use xla_hlo::ops::BinaryOp;

use super::FusedEmitter;
use super::fold::Element;
use super::frame::Units;
use super::index::Coord;
use super::nest::Range;
use crate::elemental::{self, Value};
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, Shuffle, WARP};

/// Bits of the widest access to memory.
pub(super) const ACCESS_BITS: u32 = 128;

/// The threads that do one unit.
#[derive(Clone, Copy)]
pub(super) struct Team<'e, 'ctx> {
    /// How many: a power of two, of whole warps.
    pub threads: u32,
    /// The number of the thread among them, 64 bits.
    pub member: Lanes<'e, 'ctx>,
    /// All threads of the team run the code of this level and of those outside of it.
    level: usize,
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Says that the code from here on is a team's.
    pub(super) fn enter_team(&mut self, units: Units<'e, 'ctx>) -> Result<Option<Team<'e, 'ctx>>> {
        let Units::Team { threads } = units else { return Ok(None) };
        // Outside of everything, since folds that depend on nothing are there.
        let thread = self.at_level(0, |s| Ok(s.emitter.register(Register::Thread)?.zext(64)))?;
        let member = if threads == WARP { self.at_level(0, |_| Ok(thread & i64::from(WARP - 1)))? } else { thread };
        self.team = Some(Team { threads, member, level: self.depth() });
        Ok(self.team)
    }

    /// The team, where code of that level is run by all of it.
    pub(super) fn team_at(&self, level: usize) -> Option<Team<'e, 'ctx>> {
        self.team.filter(|team| level <= team.level && self.guard == 0)
    }

    /// Waits for the others of the team, and sees what they wrote.
    pub(super) fn sync(&self, team: Team<'e, 'ctx>) -> Result<()> {
        if team.threads == WARP { self.emitter.warp_barrier() } else { self.emitter.barrier() }
    }

    /// A range over `0..extent` that the team goes through together, each turn with so many lanes a thread.
    pub(super) fn team_range(&self, team: Team<'e, 'ctx>, extent: u64, bits: u32) -> Range<'e, 'ctx> {
        let mut width = ACCESS_BITS / bits.clamp(8, ACCESS_BITS);
        while width > 1 && !(extent.is_multiple_of(width.into()) && extent >= u64::from(width * team.threads)) {
            width /= 2;
        }
        Range {
            start: team.member * i64::from(width),
            end: self.number(extent as i64),
            extent: Some(extent),
            width,
            step: u64::from(width * team.threads),
            whole: true,
        }
    }

    /// Folds elements with an operation that has an identity; all threads of the team get the result.
    pub(super) fn folded_by_team(
        &mut self,
        team: Team<'e, 'ctx>,
        op: BinaryOp,
        neutral: Value<'e, 'ctx>,
        extents: &[u64],
        element: &mut Element<'_, 'e, 'ctx, 'm>,
    ) -> Result<Value<'e, 'ctx>> {
        let ty = neutral.element_type();
        let bits = super::address::compute_bits(ty);
        let (&last, outer) = extents.split_last().unwrap_or((&1, &[]));
        let total: u64 = extents.iter().product();
        // A last dimension that is shorter than the team would leave threads idle: all dimensions are gone through as one.
        let flat = last < u64::from(team.threads) && !outer.is_empty();
        let range = if flat {
            Range {
                width: 1,
                step: team.threads.into(),
                start: team.member,
                ..self.team_range(team, total, ACCESS_BITS)
            }
        } else {
            self.team_range(team, last, bits)
        };
        let width = range.width;
        let start = neutral.splat(width);
        let looped: &[u64] = if flat { &[] } else { outer };
        let raws = self.nested(looped, 1, &mut Vec::new(), start.raws(), &mut |s, coords, carried| {
            s.for_each(range, carried.to_vec(), &mut |s, symbol, carried| {
                let place = Coord::symbol(symbol);
                let coords = match flat {
                    true => super::kernel::counters(s, &place, extents)?,
                    false => coords.iter().cloned().chain([place]).collect(),
                };
                let x = element(s, &coords)?.splat(width);
                let sum = Value::from_raws(s.emitter, ty, carried);
                Ok(elemental::binary(s.emitter, op, sum, x)?.raws())
            })
        })?;
        let mut sum = Value::from_raws(self.emitter, ty, &raws);
        while sum.width() > 1 {
            let half = sum.width() / 2;
            sum = elemental::binary(self.emitter, op, sum.slice(0, half), sum.slice(half, half))?;
        }
        self.combined(team, op, sum)
    }

    /// What all threads of the team have, combined; each gets it.
    fn combined(&mut self, team: Team<'e, 'ctx>, op: BinaryOp, value: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
        let mut sum = self.shuffled(op, value, WARP)?;
        let warps = team.threads / WARP;
        if warps == 1 {
            return Ok(sum);
        }
        let (warp, lane) = (team.member.lshr(i64::from(WARP.ilog2())), team.member & i64::from(WARP - 1));
        let ty = sum.element_type();
        let raws: Vec<Lanes<'e, 'ctx>> = sum.raws().into_iter().map(|raw| self.emitter.lanes(raw)).collect();
        let kept: Vec<Scalar> = raws.iter().map(|raw| in_memory(raw.scalar())).collect();
        let arrays = kept.iter().map(|&scalar| self.emitter.shared_array(scalar, warps.into()));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        self.when(lane.eq(0), &[], |s| {
            for (&raw, &array) in raws.iter().zip(&arrays) {
                let raw = if raw.scalar() == Scalar::Int(1) { raw.zext(8) } else { raw };
                s.emitter.store_lanes(raw, array, warp, None);
            }
            Ok(Vec::new())
        })?;
        self.emitter.barrier()?;
        let from = lane & i64::from(warps - 1);
        let mut loaded = Vec::with_capacity(raws.len());
        for ((raw, &array), &scalar) in raws.iter().zip(&arrays).zip(&kept) {
            let value = self.emitter.load_lanes(array, from, scalar, 1, None);
            loaded.push(if raw.scalar() == Scalar::Int(1) { value.trunc(1) } else { value }.raw());
        }
        sum = Value::from_raws(self.emitter, ty, &loaded);
        self.shuffled(op, sum, warps)
    }

    /// What each run of so many lanes of a warp has, a power of two, combined.
    fn shuffled(&self, op: BinaryOp, mut sum: Value<'e, 'ctx>, lanes: u32) -> Result<Value<'e, 'ctx>> {
        let mut distance = lanes / 2;
        while distance > 0 {
            let other = sum
                .raws()
                .into_iter()
                .map(|raw| Ok(self.emitter.shuffle(self.emitter.lanes(raw), Shuffle::Xor(distance))?.raw()));
            let other = Value::from_raws(self.emitter, sum.element_type(), &other.collect::<Result<Vec<_>>>()?);
            sum = elemental::binary(self.emitter, op, sum, other)?;
            distance /= 2;
        }
        Ok(sum)
    }
}

/// The type that a lane has in memory.
fn in_memory(scalar: Scalar) -> Scalar {
    if scalar == Scalar::Int(1) { Scalar::Int(8) } else { scalar }
}
