//! Order of shared memory accesses in kernels with mbarriers, bulk copies or wgmma: vector clocks of agents, and the
//! last accesses of each granule.
//!
//! Agents are the threads, then the warps as readers of wgmma operands, then the mbarriers as writers of their copies.
//! An agent's clock counts its releases to other agents. An access is ordered before the next access of a thread if the
//! thread has observed the access's clock or a later one of the accessing agent. Bulk copies and wgmma access memory
//! through the async proxy: a thread's store must be known to be fenced as well.

use std::collections::HashMap;
use std::ops::Range;

use super::access::{Conflict, Party, Touch};
use super::knowledge::Actor;

/// Maximum number of sets of accesses. At the limit all are dropped, and races with them are missed.
const MOST_SETS: usize = 1 << 18;

/// Access of a granule by an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Access {
    agent: u32,
    clock: u32,
    thread: u16,
    strong: bool,
}

/// Index of a set of accesses.
type SetNumber = u32;

/// Empty set.
const NONE: SetNumber = 0;

/// Last writes and reads of each granule.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Sets of writes and reads.
    granules: Vec<[SetNumber; 2]>,
    sets: Vec<Box<[Access]>>,
    numbers: HashMap<Box<[Access]>, SetNumber>,
    /// Cache of the last update: stamp and kind of the access, the sets before it, and the sets after it.
    last: Option<(u64, Touch, [SetNumber; 2], [SetNumber; 2])>,
}

impl Order {
    /// Forgets all accesses.
    pub fn reset(&mut self) {
        self.granules.clear();
        self.sets.clear();
        self.numbers.clear();
        self.last = None;
    }

    /// Records accesses of granules; returns the earlier access that conflicts with one of them, if any.
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

    /// Returns the sets of writes and reads after an access.
    fn changed(&mut self, [written, read]: [SetNumber; 2], touch: Touch, actor: &Actor<'_>) -> [SetNumber; 2] {
        match touch {
            Touch::Read { strong } => [written, self.with(read, (strong, false), actor)],
            Touch::Rewrite => [self.with(written, (false, true), actor), read],
            Touch::Write { strong: true } => [self.with(written, (true, true), actor), read],
            Touch::Write { strong: false } => [self.with(NONE, (false, true), actor), NONE],
        }
    }

    /// Returns a set with an access of an actor added, and the accesses removed that are ordered before it.
    fn with(&mut self, before: SetNumber, (strong, writes): (bool, bool), actor: &Actor<'_>) -> SetNumber {
        let agent = actor.agent as u32;
        let before = &self.sets[before as usize];
        // One weak access of an agent makes all of its accesses weak.
        let strong = strong && before.iter().all(|access| access.agent != agent || access.strong);
        // An unfenced store stays in the set, to be checked against accesses of the async proxy.
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

    /// Whether this is a thread's access that is not known to be followed by a proxy fence.
    fn is_unfenced(&self, access: &Access) -> bool {
        let agent = access.agent as usize;
        agent < self.threads && self.knows.fenced(agent) < access.clock
    }

    /// Whether the actor is a bulk copy or a wgmma.
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
