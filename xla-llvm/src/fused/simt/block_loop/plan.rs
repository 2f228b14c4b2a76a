//! Plan of a loop in one kernel: its phases, its threads, and whether it is profitable.

use std::fmt;

use crate::fused::simt::block_loop::cost::{PhaseCost, wanted_threads};
use crate::fused::simt::block_loop::phase::{BlockPhase, BlockRounds, Unfit};
use crate::fused::tuning::block_loop::{
    LAUNCH_CYCLES, MOST_ITEMS, MOST_OPERATIONS, MOST_PHASES, MOST_POINTERS, MOST_THREADS,
};
use crate::simt::WARP;
use crate::target::Target;

/// Loop as one kernel with one block. Phases refer to pointers by index.
#[derive(Clone, Debug)]
pub struct BlockLoop<'m> {
    /// Name of the loop instruction.
    pub(super) name: String,
    /// Phases that compute the predicate.
    pub(super) condition: Vec<BlockPhase<'m>>,
    /// Phases that compute the next state.
    pub(super) body: Vec<BlockPhase<'m>>,
    pub(super) rounds: BlockRounds,
    pub(super) pointers: usize,
    pub(super) threads: u32,
}

impl<'m> BlockLoop<'m> {
    /// Returns the plan of a loop with `pointers` pointers, for a target with threads. The error is the reason why the
    /// loop does not fit.
    pub fn new(
        name: &str,
        (condition, body): (Vec<BlockPhase<'m>>, Vec<BlockPhase<'m>>),
        rounds: BlockRounds,
        pointers: usize,
        target: &Target,
    ) -> Result<BlockLoop<'m>, Unfit> {
        let phases = || condition.iter().chain(&body).map(|phase| &phase.work);
        let wanted = phases().map(|work| wanted_threads(work, target)).max().unwrap_or(0);
        let threads = wanted.clamp(WARP.into(), MOST_THREADS).next_power_of_two() as u32;
        let costs = phases().map(|work| PhaseCost::of(work, target, threads)).collect::<Result<Vec<_>, _>>()?;
        let most = costs.iter().map(|cost| cost.items).max().unwrap_or(0);
        if most > MOST_ITEMS {
            return Err(Unfit::Elements(most));
        }
        let operations: usize = costs.iter().map(|cost| cost.operations).sum();
        if costs.len() > MOST_PHASES || pointers > MOST_POINTERS || operations > MOST_OPERATIONS {
            return Err(Unfit::Size);
        }
        let cycles = costs.iter().map(|cost| cost.cycles).fold(0, u64::saturating_add);
        let launches = LAUNCH_CYCLES * costs.len() as u64;
        if cycles > launches {
            return Err(Unfit::Slow { cycles, launches });
        }
        Ok(BlockLoop { name: name.to_string(), condition, body, rounds, pointers, threads })
    }
}

/// Example: `block-loop of 3 phases, 2 of which wait, 128 threads, 10 rounds`.
impl fmt::Display for BlockLoop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases = self.condition.len() + self.body.len();
        let waits = self.condition.iter().chain(&self.body).filter(|phase| phase.waits).count();
        write!(f, "block-loop of {phases} phases, {waits} of which wait, {} threads", self.threads)?;
        match self.rounds {
            BlockRounds::Counted(count) => write!(f, ", {count} rounds"),
            BlockRounds::Tested { at_most, .. } => write!(f, ", at most {at_most} rounds"),
        }
    }
}
