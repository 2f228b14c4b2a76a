//! Teams: threads that fold together, each some of the elements. A warp or a block folds one row; a column of a block one column.

use inkwell::values::PointerValue;
use xla_hlo::Result;
use xla_hlo::ops::BinaryOp;

use super::FusedEmitter;
use super::fold::Element;
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
    kind: TeamKind<'e, 'ctx>,
    /// All threads of the team run the code of this level and of those outside of it.
    level: usize,
}

#[derive(Clone, Copy)]
enum TeamKind<'e, 'ctx> {
    Warp,
    Block,
    /// Of each of as many warps the thread of this number, 64 bits: neighbouring teams read neighbouring elements.
    Column(Lanes<'e, 'ctx>),
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Says that the code from here on is that of a block whose columns are teams, of `threads` threads each. Gives the team and the number
    /// of the column among all.
    pub(super) fn enter_column(&mut self, threads: u32) -> Result<(Team<'e, 'ctx>, Lanes<'e, 'ctx>)> {
        let (thread, block) = self.at_level(0, |s| {
            Ok((s.emitter.register(Register::Thread)?.zext(64), s.emitter.register(Register::Block)?.zext(64)))
        })?;
        let column = self.at_level(0, |_| Ok(thread & i64::from(WARP - 1)))?;
        let member = self.at_level(0, |_| Ok(thread.lshr(i64::from(WARP.ilog2()))))?;
        let team = Team { threads, member, kind: TeamKind::Column(column), level: self.depth() };
        self.team = Some(team);
        Ok((team, self.at_level(0, |_| Ok(block * i64::from(WARP) + column))?))
    }

    /// Says that the code from here on is that of a team of so many threads: a warp, or a block.
    pub(super) fn enter_team(&mut self, threads: u32) -> Result<Team<'e, 'ctx>> {
        // Outside of everything, since folds that depend on nothing are there.
        let thread = self.at_level(0, |s| Ok(s.emitter.register(Register::Thread)?.zext(64)))?;
        let (kind, member) = match threads {
            WARP => (TeamKind::Warp, self.at_level(0, |_| Ok(thread & i64::from(WARP - 1)))?),
            _ => (TeamKind::Block, thread),
        };
        let team = Team { threads, member, kind, level: self.depth() };
        self.team = Some(team);
        Ok(team)
    }

    /// The team, where code of that level is run by all of it.
    pub(super) fn team_at(&self, level: usize) -> Option<Team<'e, 'ctx>> {
        self.team.filter(|team| level <= team.level && self.guard == 0)
    }

    /// Waits for the others of the team, and sees what they wrote.
    pub(super) fn sync(&self, team: Team<'e, 'ctx>) -> Result<()> {
        match team.kind {
            TeamKind::Warp => self.emitter.warp_barrier(),
            TeamKind::Block | TeamKind::Column(_) => self.emitter.barrier(),
        }
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
        let is_column = matches!(team.kind, TeamKind::Column(_));
        let flat = (last < u64::from(team.threads) || is_column) && !outer.is_empty();
        let range = if flat {
            Range {
                width: 1,
                step: team.threads.into(),
                start: team.member,
                ..self.team_range(team, total, ACCESS_BITS)
            }
        } else {
            self.team_range(team, last, if is_column { ACCESS_BITS } else { bits })
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
        match team.kind {
            TeamKind::Warp => self.shuffled(op, value, WARP),
            TeamKind::Block => self.combined_in_block(team, op, value),
            TeamKind::Column(column) => self.combined_in_column(team, column, op, value),
        }
    }

    fn combined_in_column(
        &mut self,
        team: Team<'e, 'ctx>,
        column: Lanes<'e, 'ctx>,
        op: BinaryOp,
        value: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let arrays = self.shared_values(value, u64::from(WARP * team.threads))?;
        self.store_shared(value, &arrays, team.member * i64::from(WARP) + column);
        self.emitter.barrier()?;
        let mut sum = self.load_shared(value, &arrays, column);
        for member in 1..team.threads {
            let other = self.load_shared(value, &arrays, column + i64::from(member * WARP));
            sum = elemental::binary(self.emitter, op, sum, other)?;
        }
        Ok(sum)
    }

    /// Shared memory for `count` values like that one: an array for each of its parts.
    fn shared_values(&self, like: Value<'e, 'ctx>, count: u64) -> Result<Vec<PointerValue<'ctx>>> {
        let scalars = like.raws().into_iter().map(|raw| in_memory(self.emitter.lanes(raw).scalar()));
        scalars.map(|scalar| self.emitter.shared_array(scalar, count)).collect()
    }

    fn store_shared(&self, value: Value<'e, 'ctx>, arrays: &[PointerValue<'ctx>], at: Lanes<'e, 'ctx>) {
        for (raw, &array) in value.raws().into_iter().zip(arrays) {
            let raw = self.emitter.lanes(raw);
            let raw = if raw.scalar() == Scalar::Int(1) { raw.zext(8) } else { raw };
            self.emitter.store_lanes(raw, array, at, None);
        }
    }

    fn load_shared(
        &self,
        like: Value<'e, 'ctx>,
        arrays: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
    ) -> Value<'e, 'ctx> {
        let parts = like.raws().into_iter().zip(arrays).map(|(raw, &array)| {
            let scalar = self.emitter.lanes(raw).scalar();
            let value = self.emitter.load_lanes(array, at, in_memory(scalar), 1, None);
            if scalar == Scalar::Int(1) { value.trunc(1).raw() } else { value.raw() }
        });
        Value::from_raws(self.emitter, like.element_type(), &parts.collect::<Vec<_>>())
    }

    fn combined_in_block(
        &mut self,
        team: Team<'e, 'ctx>,
        op: BinaryOp,
        value: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let sum = self.shuffled(op, value, WARP)?;
        let warps = team.threads / WARP;
        let (warp, lane) = (team.member.lshr(i64::from(WARP.ilog2())), team.member & i64::from(WARP - 1));
        let arrays = self.shared_values(sum, warps.into())?;
        self.when(lane.eq(0), &[], |s| {
            s.store_shared(sum, &arrays, warp);
            Ok(Vec::new())
        })?;
        self.emitter.barrier()?;
        let sum = self.load_shared(sum, &arrays, lane & i64::from(warps - 1));
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
