//! Decode attention (few queries) as launches: one kernel, or one for partial results over the keys and one that
//! combines them.

use xla_llvm::fused::{AttentionDecode, AttentionPhase, KernelSource};
use xla_llvm::target::Target;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans the launches of a decode attention; `None` for other kernels.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    source: &KernelSource<'m>,
    target: &Target,
) -> Option<PlannedSequence> {
    let plan = AttentionDecode::new(source, target)?;
    let (inputs, arrays) = (source.inputs.len(), source.pointer_count());
    let commands = plan.phases().iter().map(|&phase| {
        let (arrays, scratch) = match phase {
            AttentionPhase::Whole => (arrays, None),
            AttentionPhase::Parts => (inputs, Some(0)),
            AttentionPhase::Results => (arrays, Some(0)),
        };
        let scratch = scratch.map(KernelArgument::Scratch);
        let arguments = (0..arrays).map(KernelArgument::Array).chain(scratch).collect();
        let kernel = kernels.number(KernelCode::Attention { source: source.clone(), plan, phase });
        PlannedCommand::Launch { kernel, arguments }
    });
    let commands = commands.collect();
    Some(PlannedSequence {
        scratch: plan.scratch_bytes().into_iter().collect(),
        commands,
        ..PlannedSequence::default()
    })
}
