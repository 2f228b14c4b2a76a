//! Order of accesses of shared memory in kernels with barriers in memory, bulk copies or warp groups: what each thread
//! knows of the others, by vector clocks, and the last accesses of each granule.
//!
//! Agents are the threads, then the warps as readers of their products, then the barriers as writers of the copies that
//! they are told of. An agent's clock counts what it has let others know. An access is ordered before a thread's next
//! one where the thread knows a clock of the accessing agent that is not earlier. Bulk copies and products go another
//! way to memory: a thread's store must be known to be fenced as well.

use std::collections::HashMap;
use std::ops::Range;

use super::access::{Conflict, Party, Touch};
use super::knowledge::Actor;

/// So many sets of accesses are kept at most; then all are forgotten, and races with them are missed.
const MOST_SETS: usize = 1 << 18;

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Access {
    agent: u32,
    clock: u32,
    thread: u16,
    strong: bool,
}

/// A set of accesses, by its number.
type SetNumber = u32;

/// The set of none.
const NONE: SetNumber = 0;

/// Last writes and reads of each granule.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Writes and reads.
    granules: Vec<[SetNumber; 2]>,
    sets: Vec<Box<[Access]>>,
    numbers: HashMap<Box<[Access]>, SetNumber>,
    /// The last change: what it was of, and what came of it.
    last: Option<(u64, Touch, [SetNumber; 2], [SetNumber; 2])>,
}

impl Order {
    /// Forgets everything.
    pub fn reset(&mut self) {
        self.granules.clear();
        self.sets.clear();
        self.numbers.clear();
        self.last = None;
    }

    /// Notes accesses of granules; the one that one of them is in conflict with, if there is one.
    pub fn touch(&mut self, granules: Range<usize>, touch: Touch, actor: &Actor<'_>) -> Option<Conflict> {
        if self.sets.len() > MOST_SETS {
            self.reset();
        }
        if self.sets.is_empty() {
            self.sets.push(Box::default());
        }
        if self.granules.len() < granules.end {
            self.granules.resize(granules.end, [NONE; 2]);
        }
        for granule in granules {
            let before = self.granules[granule];
            self.granules[granule] = match self.last {
                Some((stamp, last, of, after)) if stamp == actor.stamp && last == touch && of == before => after,
                _ => {
                    if let Some(conflict) = self.conflict(before, touch, actor) {
                        return Some(conflict);
                    }
                    let after = self.changed(before, touch, actor);
                    self.last = Some((actor.stamp, touch, before, after));
                    after
                }
            };
        }
        None
    }

    /// Sets after an access.
    fn changed(&mut self, [written, read]: [SetNumber; 2], touch: Touch, actor: &Actor<'_>) -> [SetNumber; 2] {
        match touch {
            Touch::Read { strong } => [written, self.with(read, (strong, false), actor)],
            Touch::Rewrite => [self.with(written, (false, true), actor), read],
            Touch::Write { strong: true } => [self.with(written, (true, true), actor), read],
            Touch::Write { strong: false } => [self.with(NONE, (false, true), actor), NONE],
        }
    }

    /// A set with an access of an actor, without those that are ordered before it.
    fn with(&mut self, before: SetNumber, (strong, writes): (bool, bool), actor: &Actor<'_>) -> SetNumber {
        let agent = actor.agent as u32;
        let before = &self.sets[before as usize];
        // One weak access of an agent makes them all weak.
        let strong = strong && before.iter().all(|access| access.agent != agent || access.strong);
        // A store that is not fenced yet stays, for those that go the other way.
        let kept = before
            .iter()
            .filter(|access| access.agent != agent && (!actor.knows(access) || writes && actor.is_unfenced(access)));
        let mut accesses: Vec<Access> = kept.copied().collect();
        accesses.push(Access { agent, clock: actor.clock, thread: actor.thread as u16, strong });
        accesses.sort_unstable_by_key(|access| access.agent);
        let accesses = accesses.into_boxed_slice();
        if let Some(number) = self.numbers.get(&accesses) {
            return *number;
        }
        let number = self.sets.len() as SetNumber;
        self.sets.push(accesses.clone());
        self.numbers.insert(accesses, number);
        number
    }

    fn conflict(&self, [written, read]: [SetNumber; 2], touch: Touch, actor: &Actor<'_>) -> Option<Conflict> {
        let (looks_at_writes, looks_at_reads, strong) = match touch {
            Touch::Read { strong } => (true, false, strong),
            Touch::Rewrite => (false, true, false),
            Touch::Write { strong } => (true, true, strong),
        };
        let among = |set: SetNumber, wrote: bool| {
            let of = |access: &&Access| {
                let unordered = !(actor.knows(access) || strong && access.strong);
                unordered || wrote && actor.is_asynchronous() && actor.is_unfenced(access)
            };
            self.sets[set as usize].iter().find(of).map(|access| actor.conflict(access, wrote))
        };
        let writes = if looks_at_writes { among(written, true) } else { None };
        writes.or_else(|| if looks_at_reads { among(read, false) } else { None })
    }
}

impl Actor<'_> {
    fn knows(&self, access: &Access) -> bool {
        access.agent as usize == self.agent && self.agent < self.threads
            || self.knows.seen(access.agent as usize) >= access.clock
    }

    /// Whether it is a thread's access that no fence is known to follow.
    fn is_unfenced(&self, access: &Access) -> bool {
        let agent = access.agent as usize;
        agent < self.threads && self.knows.fenced(agent) < access.clock
    }

    /// Whether it is a bulk copy or a product.
    fn is_asynchronous(&self) -> bool {
        self.agent >= self.threads
    }

    fn conflict(&self, access: &Access, wrote: bool) -> Conflict {
        let agent = access.agent as usize;
        let party = match () {
            () if agent >= self.threads + self.warps => Party::Copy,
            () if agent >= self.threads => Party::Product,
            () if self.knows(access) => Party::Unfenced,
            () => Party::Thread,
        };
        Conflict { thread: u64::from(access.thread), segment: 0, wrote, party }
    }
}
