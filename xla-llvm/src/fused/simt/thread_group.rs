//! Teams: threads that reduce together, each some of the elements. A warp or a block reduces one row; a column of a
//! block one column.

use xla_hlo::Result;

use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::nest::Range;
use crate::lanes::Lanes;
use crate::simt::{Register, WARP};

/// Bits of the widest access to memory.
pub(crate) const ACCESS_BITS: u32 = 128;

/// The threads that do one unit.
#[derive(Clone, Copy)]
pub(crate) struct Team<'e, 'ctx> {
    /// How many: a power of two, of whole warps.
    pub threads: u32,
    /// The number of the thread among them, 64 bits.
    pub member: Lanes<'e, 'ctx>,
    pub kind: TeamKind<'e, 'ctx>,
    /// All threads of the team run the code of this level and of those outside of it.
    level: usize,
}

/// Which threads a team has.
#[derive(Clone, Copy)]
pub(crate) enum TeamKind<'e, 'ctx> {
    /// Those of a warp.
    Warp,
    /// Those of a block.
    Block,
    /// Of each of as many warps the thread of this number, 64 bits: neighbouring teams read neighbouring elements.
    Column(Lanes<'e, 'ctx>),
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Says that the code from here on is that of a block whose columns are teams, of `threads` threads each. Gives the
    /// team and the number of the column among all.
    pub(crate) fn enter_column(&mut self, threads: u32) -> Result<(Team<'e, 'ctx>, Lanes<'e, 'ctx>)> {
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
    pub(crate) fn enter_team(&mut self, threads: u32) -> Result<Team<'e, 'ctx>> {
        // Outside of everything, since reductions that depend on nothing are there.
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
    pub(crate) fn team_at(&self, level: usize) -> Option<Team<'e, 'ctx>> {
        self.team.filter(|team| level <= team.level && self.guard == 0)
    }

    /// Waits for the others of the team, and sees what they wrote.
    pub(crate) fn sync(&self, team: Team<'e, 'ctx>) -> Result<()> {
        match team.kind {
            TeamKind::Warp => self.emitter.warp_barrier(),
            TeamKind::Block | TeamKind::Column(_) => self.emitter.barrier(),
        }
    }

    /// A range over `0..extent` that the team goes through together, each turn with so many lanes a thread.
    pub(crate) fn team_range(&self, team: Team<'e, 'ctx>, extent: u64, bits: u32) -> Range<'e, 'ctx> {
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
}
