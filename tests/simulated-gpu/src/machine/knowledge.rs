//! Vector clocks: the knowledge that agents have of each other.

/// Number of lanes of a warp.
pub(super) const LANES_OF_WARP: usize = 32;

/// Vector clocks of an agent: the observed clock of each agent, and the clock up to which accesses are known to be
/// fenced.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    seen: Vec<u32>,
    fenced: Vec<u32>,
}

impl Knowledge {
    /// Creates the clocks of an agent that has observed only itself.
    pub fn of(agent: usize, agents: usize) -> Knowledge {
        let mut seen = vec![0; agents];
        seen[agent] = 1;
        Knowledge { seen, fenced: vec![0; agents] }
    }

    pub fn seen(&self, agent: usize) -> u32 {
        self.seen.get(agent).copied().unwrap_or(0)
    }

    /// Returns the clock of an agent up to which its accesses are known to be fenced.
    pub fn fenced(&self, agent: usize) -> u32 {
        self.fenced.get(agent).copied().unwrap_or(0)
    }

    /// Observes a clock of an agent.
    pub fn learn(&mut self, agent: usize, clock: u32) {
        if self.seen.len() <= agent {
            self.seen.resize(agent + 1, 0);
        }
        self.seen[agent] = clock.max(self.seen[agent]);
    }

    /// Increments the agent's own clock, which separates its next accesses from earlier ones.
    pub fn tick(&mut self, agent: usize) {
        let clock = self.seen(agent) + 1;
        self.learn(agent, clock);
    }

    /// Takes the maximum with the clocks of another agent.
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

    /// Takes the minimum with the clocks of another agent.
    pub fn meet(&mut self, other: &Knowledge) {
        let combine = |into: &mut Vec<u32>, from: &[u32]| {
            into.truncate(from.len());
            into.iter_mut().zip(from).for_each(|(known, &clock)| *known = clock.min(*known));
        };
        combine(&mut self.seen, &other.seen);
        combine(&mut self.fenced, &other.fenced);
    }

    /// Marks all observed accesses as fenced.
    pub fn fence(&mut self) {
        let Knowledge { seen, fenced } = self;
        fenced.clone_from(seen);
    }
}

/// Agent that accesses shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor<'a> {
    pub agent: usize,
    pub clock: u32,
    pub knows: &'a Knowledge,
    /// Thread of the agent, or one of its threads.
    pub thread: usize,
    /// Number of agents that are threads, and that are warps.
    pub threads: usize,
    pub warps: usize,
    /// Stamp that differs for each state of knowledge.
    pub stamp: u64,
}

impl<'a> Actor<'a> {
    /// Creates the actor of a thread that acts for itself, in a block with `threads` threads.
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
