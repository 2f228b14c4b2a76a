//! Thread groups: threads that reduce together, each some of the elements. A warp or a block reduces one row; a column
//! of a block reduces one column.

use xla_hlo::Result;

use crate::fused::emitter::FusedEmitter;
use crate::fused::mode::{GroupKind, Mode, ThreadGroup};
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::lanes::Lanes;
use crate::simt::{Register, WARP};

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Enters code whose groups are the columns of a block, of `threads` threads each. Returns the group and the global
    /// index of the column.
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

    /// Enters the code of a group of `threads` threads: a warp, or a block.
    pub(crate) fn enter_group(&mut self, threads: u32) -> Result<ThreadGroup<'e, 'ctx>> {
        // At level 0, so that reductions at outer levels can use it.
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

    /// Returns the group, if all of its threads execute the code at a level.
    pub(crate) fn group_at(&self, level: usize) -> Option<ThreadGroup<'e, 'ctx>> {
        match &self.mode {
            Mode::Threads(mode) => mode.group.filter(|group| level <= group.level && self.guard == 0),
            Mode::Vector(_) => None,
        }
    }

    /// Synchronizes the group's threads, and makes their writes visible to each other: a warp or a block barrier.
    pub(crate) fn sync(&self, group: ThreadGroup<'e, 'ctx>) -> Result<()> {
        match group.kind {
            GroupKind::Warp => self.emitter.warp_barrier(),
            GroupKind::Block | GroupKind::Column(_) => self.emitter.barrier(),
        }
    }
}

impl ThreadGroup<'_, '_> {
    /// Returns the number of adjacent elements per access of a thread, so that all threads of the group have some of
    /// `extent` elements.
    pub(crate) fn access_width(&self, extent: u64, bits: u32) -> u32 {
        let mut width = ACCESS_BITS / bits.clamp(8, ACCESS_BITS);
        while width > 1 && !(extent.is_multiple_of(width.into()) && extent >= u64::from(width * self.threads)) {
            width /= 2;
        }
        width
    }
}
