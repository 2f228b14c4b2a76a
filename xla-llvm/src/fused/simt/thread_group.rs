//! Thread groups: threads that reduce together, each some of the elements. A warp or a block reduces one row; a column
//! of a block one column.

use xla_hlo::Result;

use crate::fused::emitter::FusedEmitter;
use crate::fused::mode::{GroupKind, Mode, ThreadGroup};
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::lanes::Lanes;
use crate::simt::{Register, WARP};

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Says that the code from here on is that of a block whose columns are groups, of `threads` threads each. Gives
    /// the group and the number of the column among all.
    pub(crate) fn enter_column(&mut self, threads: u32) -> Result<(ThreadGroup<'e, 'ctx>, Lanes<'e, 'ctx>)> {
        let (thread, block) = self.at_level(0, |s| {
            Ok((s.emitter.register(Register::Thread)?.zext(64), s.emitter.register(Register::Block)?.zext(64)))
        })?;
        let column = self.at_level(0, |_| Ok(thread & i64::from(WARP - 1)))?;
        let member = self.at_level(0, |_| Ok(thread.lshr(i64::from(WARP.ilog2()))))?;
        let group = ThreadGroup { threads, member, kind: GroupKind::Column(column), level: self.depth() };
        self.set_group(group);
        Ok((group, self.at_level(0, |_| Ok(block * i64::from(WARP) + column))?))
    }

    /// Begins the code of a group of `threads` threads: a warp, or a block.
    pub(crate) fn enter_group(&mut self, threads: u32) -> Result<ThreadGroup<'e, 'ctx>> {
        // Outside of everything, since reductions that depend on nothing are there.
        let thread = self.at_level(0, |s| Ok(s.emitter.register(Register::Thread)?.zext(64)))?;
        let (kind, member) = match threads {
            WARP => (GroupKind::Warp, self.at_level(0, |_| Ok(thread & i64::from(WARP - 1)))?),
            _ => (GroupKind::Block, thread),
        };
        let group = ThreadGroup { threads, member, kind, level: self.depth() };
        self.set_group(group);
        Ok(group)
    }

    fn set_group(&mut self, group: ThreadGroup<'e, 'ctx>) {
        if let Some(mode) = self.mode.threads() {
            mode.group = Some(group);
        }
    }

    /// The group, where code of that level is run by all of it.
    pub(crate) fn group_at(&self, level: usize) -> Option<ThreadGroup<'e, 'ctx>> {
        match &self.mode {
            Mode::Threads(mode) => mode.group.filter(|group| level <= group.level && self.guard == 0),
            Mode::Vector(_) => None,
        }
    }

    /// Barrier of the group: waits for its threads, and sees their writes.
    pub(crate) fn sync(&self, group: ThreadGroup<'e, 'ctx>) -> Result<()> {
        match group.kind {
            GroupKind::Warp => self.emitter.warp_barrier(),
            GroupKind::Block | GroupKind::Column(_) => self.emitter.barrier(),
        }
    }
}

impl ThreadGroup<'_, '_> {
    /// Neighbours that one access of a thread loads, of `extent` elements that the group goes through: all of its
    /// threads have some.
    pub(crate) fn access_width(&self, extent: u64, bits: u32) -> u32 {
        let mut width = ACCESS_BITS / bits.clamp(8, ACCESS_BITS);
        while width > 1 && !(extent.is_multiple_of(width.into()) && extent >= u64::from(width * self.threads)) {
            width /= 2;
        }
        width
    }
}
