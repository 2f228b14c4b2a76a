//! Loops of small steps as a single launch of one block.

use xla_hlo::Module;
use xla_llvm::fused::{BlockLoop, BlockPhase, BlockRounds, KernelCode, KernelSource, PhaseWork};
use xla_llvm::target::Target;
use xla_passes::buffers::Slice;
use xla_service::thunks::{ArraySlice, LoopContext, LoopRounds, LoopStep};

use super::{Kernels, NotGenerated};
use crate::program::commands::{CommandSequence, KernelArgument};

/// Plans the launch of a loop. `None` for a loop that is better launched step by step; the reason is logged.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoopContext<'_>,
    target: &Target,
) -> Option<CommandSequence<NotGenerated>> {
    let label = module[cx.computation][cx.instruction].name();
    let arrays = cx.operands.len() + cx.results.len();
    let builder = PhaseBuilder { module, cx };
    let stays = |reason: &dyn std::fmt::Display| tracing::debug!("%{label} is not one kernel: {reason}");
    let Some((phases, rounds)) = builder.phases() else {
        stays(&"it has steps that are no kernels of their own");
        return None;
    };
    let plan = BlockLoop::new(label, phases, rounds, arrays, target).inspect_err(|reason| stays(reason)).ok()?;
    tracing::debug!("%{label} is one kernel: {plan}");
    let kernel = kernels.number(KernelCode::new(plan));
    let command = kernels.launch(kernel, (0..arrays).map(KernelArgument::Array).collect());
    Some(CommandSequence { commands: vec![command], ..CommandSequence::default() })
}

/// Converts steps of a loop to phases of a kernel.
struct PhaseBuilder<'a, 'm> {
    module: &'m Module,
    cx: &'a LoopContext<'a>,
}

/// Phases of the condition, then of the body.
type Phases<'m> = (Vec<BlockPhase<'m>>, Vec<BlockPhase<'m>>);

impl<'m> PhaseBuilder<'_, 'm> {
    fn phases(&self) -> Option<(Phases<'m>, BlockRounds)> {
        let condition = self.all_of(self.cx.condition, Pending::default())?;
        let (rounds, pending) = match self.cx.rounds {
            LoopRounds::Counted(count) => (BlockRounds::Counted(count), Pending::default()),
            LoopRounds::Tested { at_most } => {
                let rounds = BlockRounds::Tested { predicate: self.pointer(self.cx.predicate)?, at_most };
                (rounds, Pending { reads: vec![self.cx.predicate], ..Pending::default() })
            }
        };
        Some(((condition, self.all_of(self.cx.body, pending)?), rounds))
    }

    fn all_of(&self, steps: &[LoopStep], mut pending: Pending) -> Option<Vec<BlockPhase<'m>>> {
        steps.iter().map(|step| Some(BlockPhase { work: self.work(step)?, waits: pending.add(step) })).collect()
    }

    fn work(&self, step: &LoopStep) -> Option<PhaseWork<'m>> {
        let pointers: Vec<usize> =
            step.operands.iter().chain(&step.results).map(|array| self.pointer(array.slice)).collect::<Option<_>>()?;
        if let (true, [from, to]) = (step.copies, &pointers[..]) {
            return Some(PhaseWork::Copy { from: *from, to: *to, bytes: step.results.first()?.slice.size });
        }
        let source = KernelSource::of_instruction(self.module, &step.context(self.module))?;
        Some(PhaseWork::Compute { source, pointers })
    }

    /// Returns the index of the pointer to an array.
    fn pointer(&self, slice: Slice) -> Option<usize> {
        self.cx.operands.iter().chain(self.cx.results).position(|array| array.slice == slice)
    }
}

/// Arrays that threads have accessed since the last barrier.
#[derive(Default)]
struct Pending {
    reads: Vec<Slice>,
    writes: Vec<Slice>,
}

impl Pending {
    /// Adds a step. Returns whether it needs a barrier before it.
    fn add(&mut self, step: &LoopStep) -> bool {
        let slices = |arrays: &[ArraySlice]| -> Vec<Slice> { arrays.iter().map(|array| array.slice).collect() };
        let (reads, writes) = (slices(&step.operands), slices(&step.results));
        let meet = |before: &[Slice], now: &[Slice]| before.iter().any(|slice| now.iter().any(|n| n.overlaps(slice)));
        let waits = meet(&self.writes, &reads) || meet(&self.writes, &writes) || meet(&self.reads, &writes);
        if waits {
            *self = Pending::default();
        }
        self.reads.extend(reads);
        self.writes.extend(writes);
        waits
    }
}
