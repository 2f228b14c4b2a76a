//! Knowledge that agents have of each other: vector clocks.

/// Lanes of a warp.
pub(super) const LANES_OF_WARP: usize = 32;

/// Clocks of agents: what of them is known, and what is known to be fenced.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    seen: Vec<u32>,
    fenced: Vec<u32>,
}

impl Knowledge {
    /// Knowledge of nothing but the own clock, of so many agents.
    pub fn of(agent: usize, agents: usize) -> Knowledge {
        let mut seen = vec![0; agents];
        seen[agent] = 1;
        Knowledge { seen, fenced: vec![0; agents] }
    }

    pub fn seen(&self, agent: usize) -> u32 {
        self.seen.get(agent).copied().unwrap_or(0)
    }

    /// The clock of an agent up to which its accesses are known to be fenced.
    pub fn fenced(&self, agent: usize) -> u32 {
        self.fenced.get(agent).copied().unwrap_or(0)
    }

    /// Learns a clock.
    pub fn learn(&mut self, agent: usize, clock: u32) {
        if self.seen.len() <= agent {
            self.seen.resize(agent + 1, 0);
        }
        self.seen[agent] = clock.max(self.seen[agent]);
    }

    /// Lets the agent's next accesses be told from those so far.
    pub fn tick(&mut self, agent: usize) {
        let clock = self.seen(agent) + 1;
        self.learn(agent, clock);
    }

    /// Learns what another one knows.
    pub fn join(&mut self, other: &Knowledge) {
        let combine = |into: &mut Vec<u32>, from: &[u32]| {
            if into.len() < from.len() {
                into.resize(from.len(), 0);
            }
            into.iter_mut().zip(from).for_each(|(known, &clock)| *known = clock.max(*known));
        };
        combine(&mut self.seen, &other.seen);
        combine(&mut self.fenced, &other.fenced);
    }

    /// Forgets what another one does not know.
    pub fn meet(&mut self, other: &Knowledge) {
        let combine = |into: &mut Vec<u32>, from: &[u32]| {
            into.truncate(from.len());
            into.iter_mut().zip(from).for_each(|(known, &clock)| *known = clock.min(*known));
        };
        combine(&mut self.seen, &other.seen);
        combine(&mut self.fenced, &other.fenced);
    }

    /// All that is known so far is fenced from now on.
    pub fn fence(&mut self) {
        let Knowledge { seen, fenced } = self;
        fenced.clone_from(seen);
    }
}

/// An agent that touches shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor<'a> {
    pub agent: usize,
    pub clock: u32,
    pub knows: &'a Knowledge,
    /// The thread, or one of those that act.
    pub thread: usize,
    /// Number of agents that are threads, and that are warps.
    pub threads: usize,
    pub warps: usize,
    /// Another one for each state of knowledge.
    pub stamp: u64,
}

impl<'a> Actor<'a> {
    /// A thread of so many, for itself.
    pub fn thread(thread: usize, threads: usize, knows: &'a Knowledge) -> Actor<'a> {
        let clock = knows.seen(thread);
        Actor {
            agent: thread,
            clock,
            knows,
            thread,
            threads,
            warps: threads.div_ceil(LANES_OF_WARP),
            stamp: (thread as u64) << 32 | u64::from(clock),
        }
    }
}
