//! Shadow memory: the last accesses of each granule, for race detection.
//!
//! Time is counted in segments: one for each block, and one more for each barrier of the block. Two accesses of a block
//! in different segments are ordered; two accesses of different blocks of a launch never are. Within a segment
//! `bar.warp.sync` orders threads of a warp: each lane keeps the clocks that it has observed of the others.

use super::access::{Conflict, LANES_OF_WARP, Party, Touch, Who};

/// Number of entries of a page.
const PAGE: usize = 4096;

/// Bit fields of a record, from the lowest: clock, thread, marks, segment.
const CLOCK_BITS: u32 = 16;
const THREAD_BITS: u32 = 10;
const MARK_BITS: u32 = 4;
const SEGMENT_SHIFT: u32 = CLOCK_BITS + THREAD_BITS + MARK_BITS;

/// Mark: all accesses are atomic or volatile.
const STRONG: u64 = 1;
/// Mark: accesses of several lanes of the thread's warp.
const LANES: u64 = 2;
/// Mark: accesses of threads of several warps.
const WARPS: u64 = 4;
/// Mark: accesses of earlier blocks of the same launch.
const BLOCKS: u64 = 8;

/// Greatest clock; warps that synchronize more often within a segment are no longer checked.
const LAST_CLOCK: u64 = (1 << CLOCK_BITS) - 1;

/// Last write and last read of each granule.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Box<[[u64; 2]; PAGE]>>>,
}

impl Shadow {
    /// Records an access of a granule; returns the earlier access that conflicts with it, if any.
    #[inline]
    pub fn touch(&mut self, granule: usize, touch: Touch, who: &Who<'_>) -> Option<Conflict> {
        let page = granule / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let entries = self.pages[page].get_or_insert_with(|| Box::new([[0; 2]; PAGE]));
        let [written, read] = &mut entries[granule % PAGE];
        match touch {
            Touch::Read { strong } => {
                let conflict =
                    if strong && marks(*written) & STRONG != 0 { None } else { who.conflict(*written, true) };
                *read = who.merged(*read, strong);
                conflict
            }
            Touch::Rewrite => {
                let conflict = who.conflict(*read, false);
                *written = who.merged(*written, false);
                conflict
            }
            Touch::Write { strong } => {
                let both_strong = |record| strong && marks(record) & STRONG != 0;
                let conflict = match both_strong(*written) {
                    true => None,
                    false => who.conflict(*written, true),
                };
                let conflict = conflict.or_else(|| if both_strong(*read) { None } else { who.conflict(*read, false) });
                // Strong writes do not order each other, so the marks of all of them are kept.
                *written = if strong { who.merged(*written, true) } else { who.record() };
                conflict
            }
        }
    }
}

fn marks(record: u64) -> u64 {
    record >> (CLOCK_BITS + THREAD_BITS) & ((1 << MARK_BITS) - 1)
}

fn thread_of(record: u64) -> u64 {
    record >> CLOCK_BITS & ((1 << THREAD_BITS) - 1)
}

fn with_marks(record: u64, marks: u64) -> u64 {
    record | marks << (CLOCK_BITS + THREAD_BITS)
}

impl Who<'_> {
    fn lane(&self) -> usize {
        self.thread as usize % LANES_OF_WARP
    }

    /// Returns the record of an access of this thread alone.
    fn record(&self) -> u64 {
        let clock = self.heard[self.lane()].min(LAST_CLOCK);
        self.segment << SEGMENT_SHIFT | self.thread << CLOCK_BITS | clock
    }

    /// Returns the record of an access of this thread, merged with that of earlier accesses.
    #[inline]
    fn merged(&self, before: u64, strong: bool) -> u64 {
        let mine = with_marks(self.record(), if strong { STRONG } else { 0 });
        let segment = before >> SEGMENT_SHIFT;
        if segment < self.since || before == 0 {
            return mine;
        }
        let kept = marks(before);
        // One weak access makes the merged record weak.
        let strong = if strong { kept & STRONG } else { 0 };
        if segment < self.block {
            return with_marks(self.record(), strong | BLOCKS);
        }
        if segment < self.segment {
            return with_marks(self.record(), if kept & BLOCKS != 0 { strong | BLOCKS } else { marks(mine) });
        }
        let (other, clock) = (thread_of(before), before & LAST_CLOCK);
        if kept & (WARPS | BLOCKS) == 0 && !self.is_unordered_in_segment(other, clock, kept & LANES != 0) {
            // Accesses ordered after this one are ordered after the earlier ones as well.
            return mine;
        }
        let mut marks = strong | kept & (LANES | WARPS | BLOCKS);
        if other != self.thread {
            let same_warp = other as usize / LANES_OF_WARP == self.thread as usize / LANES_OF_WARP;
            marks |= if same_warp { LANES } else { WARPS };
        }
        let clock = clock.max(self.record() & LAST_CLOCK);
        with_marks(self.record() & !LAST_CLOCK | clock, marks)
    }

    /// Returns the conflict with an earlier access, unless that is ordered before this thread's next access.
    #[inline]
    fn conflict(&self, record: u64, wrote: bool) -> Option<Conflict> {
        let segment = record >> SEGMENT_SHIFT;
        if record == 0 || segment < self.since {
            return None;
        }
        let (marks, thread) = (marks(record), thread_of(record));
        let unordered = if segment < self.block || marks & BLOCKS != 0 {
            true
        } else if segment < self.segment {
            false
        } else if marks & WARPS != 0 {
            true
        } else {
            self.is_unordered_in_segment(thread, record & LAST_CLOCK, marks & LANES != 0)
        };
        unordered.then_some(Conflict { thread, segment, wrote, party: Party::Thread })
    }

    fn is_unordered_in_segment(&self, thread: u64, clock: u64, several: bool) -> bool {
        if thread as usize / LANES_OF_WARP != self.thread as usize / LANES_OF_WARP {
            return true;
        }
        if clock == LAST_CLOCK {
            return false;
        }
        let (lane, mine) = (thread as usize % LANES_OF_WARP, self.lane());
        match several {
            true => (0..self.lanes).any(|lane| lane != mine && self.heard[lane] < clock),
            false => lane != mine && self.heard[lane] < clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(thread: u64, block: u64, segment: u64) -> Who<'static> {
        let mut heard = [0; LANES_OF_WARP];
        heard[thread as usize % LANES_OF_WARP] = 1;
        Who { thread, segment, block, since: 10, heard, lanes: LANES_OF_WARP, actor: None }
    }

    const READ: Touch = Touch::Read { strong: false };
    const WRITE: Touch = Touch::Write { strong: false };
    const ATOMIC: Touch = Touch::Write { strong: true };

    /// Whether the last of a sequence of accesses conflicts with an earlier one.
    fn races(accesses: &[(Touch, Who<'_>)]) -> bool {
        let mut shadow = Shadow::default();
        let conflicts: Vec<bool> = accesses.iter().map(|(touch, who)| shadow.touch(5, *touch, who).is_some()).collect();
        assert!(conflicts[..conflicts.len() - 1].iter().all(|conflict| !conflict), "{conflicts:?}");
        conflicts[conflicts.len() - 1]
    }

    #[test]
    fn reads_do_not_race() {
        assert!(!races(&[(READ, who(1, 10, 10)), (READ, who(2, 10, 10)), (READ, who(1, 11, 12))]));
    }

    #[test]
    fn a_barrier_orders_a_block_and_nothing_orders_blocks() {
        assert!(races(&[(WRITE, who(1, 10, 10)), (READ, who(40, 10, 10))]));
        assert!(races(&[(READ, who(1, 10, 10)), (WRITE, who(2, 10, 10))]));
        assert!(!races(&[(WRITE, who(1, 10, 10)), (WRITE, who(40, 10, 11))]));
        assert!(races(&[(WRITE, who(1, 10, 10)), (READ, who(1, 11, 11))]));
        assert!(!races(&[(WRITE, who(1, 8, 9)), (READ, who(1, 11, 11))]), "another launch");
        assert!(!races(&[(READ, who(3, 10, 10)), (WRITE, who(3, 10, 10))]));
    }

    #[test]
    fn several_may_write_the_same() {
        let same = Touch::Rewrite;
        assert!(!races(&[(WRITE, who(1, 10, 10)), (same, who(40, 10, 10)), (same, who(1, 11, 11))]));
        assert!(races(&[(WRITE, who(1, 10, 10)), (same, who(40, 10, 10)), (READ, who(40, 10, 10))]));
        assert!(races(&[(WRITE, who(1, 10, 10)), (same, who(1, 11, 11)), (READ, who(1, 11, 12))]));
        assert!(races(&[(READ, who(1, 10, 10)), (same, who(40, 10, 10))]));
    }

    #[test]
    fn earlier_readers_are_not_forgotten() {
        // A block read it; a second block reads it as well, then writes it.
        assert!(races(&[(READ, who(1, 10, 10)), (READ, who(1, 11, 11)), (WRITE, who(1, 11, 12))]));
        assert!(races(&[(READ, who(1, 10, 10)), (READ, who(40, 10, 10)), (WRITE, who(40, 10, 10))]));
        assert!(races(&[(READ, who(1, 10, 10)), (READ, who(2, 10, 10)), (WRITE, who(2, 10, 10))]));
    }

    #[test]
    fn atomics_race_with_plain_accesses_alone() {
        assert!(!races(&[(ATOMIC, who(1, 10, 10)), (ATOMIC, who(2, 10, 10)), (ATOMIC, who(2, 11, 11))]));
        assert!(races(&[(ATOMIC, who(1, 10, 10)), (READ, who(2, 10, 10))]));
        assert!(races(&[(ATOMIC, who(1, 10, 10)), (ATOMIC, who(1, 11, 11)), (READ, who(1, 11, 12))]));
        assert!(races(&[(WRITE, who(1, 10, 10)), (ATOMIC, who(2, 10, 10))]));
    }

    #[test]
    fn lanes_that_have_heard_of_each_other_are_ordered() {
        let mut later = who(2, 10, 10);
        later.heard = [1; LANES_OF_WARP];
        later.heard[2] = 2;
        assert!(!races(&[(WRITE, who(1, 10, 10)), (READ, later)]));
        assert!(!races(&[(READ, who(1, 10, 10)), (READ, who(3, 10, 10)), (WRITE, later)]));
        assert!(!races(&[(READ, who(1, 10, 10)), (READ, who(3, 10, 10)), (READ, later), (WRITE, later)]));
        assert!(races(&[(READ, who(1, 10, 10)), (READ, later), (WRITE, who(3, 10, 10))]));
    }
}
