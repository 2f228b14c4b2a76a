//! Split-K matmuls as two launches: one for partial sums, one that adds them.

use xla_llvm::fused::{KernelSource, SplitK, SplitKPhase};
use xla_llvm::target::Target;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans the launches of a split-K matmul; `None` for other kernels.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    source: &KernelSource<'m>,
    target: &Target,
) -> Option<PlannedSequence> {
    Some(launches(kernels, source, SplitK::new(source, target)?))
}

/// Plans the launches of a split-K matmul from its plan.
pub(crate) fn launches<'m>(kernels: &mut Kernels<'m>, source: &KernelSource<'m>, plan: SplitK) -> PlannedSequence {
    let (inputs, arrays) = (source.inputs.len(), source.pointer_count());
    let commands = SplitK::PHASES.map(|phase| {
        let arrays = match phase {
            SplitKPhase::Parts => inputs,
            SplitKPhase::Results => arrays,
        };
        let arguments = (0..arrays).map(KernelArgument::Array).chain([KernelArgument::Scratch(0)]).collect();
        let kernel = kernels.number(KernelCode::SplitK { source: source.clone(), plan, phase });
        PlannedCommand::Launch { kernel, arguments }
    });
    PlannedSequence { scratch: vec![plan.scratch_bytes()], commands: commands.into(), ..PlannedSequence::default() }
}
