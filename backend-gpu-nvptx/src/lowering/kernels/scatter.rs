//! Scatters as launches: one for the updates, after others that claim or sort indices if necessary.

use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, Module};
use xla_llvm::fused::{ScatterPhase, ThreadedScatter};
use xla_llvm::target::Target;
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels, sort};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans the launches that scatter into the results, which hold the inputs. `None` if one thread must combine the
/// updates in order.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    (scatter, target): (&Scatter, &Target),
) -> Option<PlannedSequence> {
    let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
    let inputs = shapes.len() / 2;
    let scatter = Box::new(ThreadedScatter::new(module, scatter, &shapes, target)?);
    let label = cx.instruction().name();
    let mut scratch: Vec<usize> = scatter.scratch_bytes().into_iter().collect();
    let keys = scatter.sort();
    // The sorted keys are in the first memory. With an even number of merges, the launch that sorts runs writes to the
    // first memory and reads from the second; with an odd number, it is the reverse.
    let unsorted = keys.as_ref().map_or(0, |keys| if keys.merges().count().is_multiple_of(2) { 1 } else { 0 });
    let mut commands = Vec::new();
    for &phase in scatter.phases() {
        let memory = if phase == ScatterPhase::Keys { unsorted } else { 0 };
        let memory = scratch.first().map(|_| KernelArgument::Scratch(memory));
        let code = KernelCode::Scatter { module, scatter: scatter.clone(), phase, label: label.to_string() };
        let arguments = (inputs..shapes.len() + inputs).map(KernelArgument::Array).chain(memory).collect();
        commands.push(PlannedCommand::Launch { kernel: kernels.number(code), arguments });
    }
    if let Some(keys) = keys {
        scratch.extend(keys.array_bytes());
        let arrays = [unsorted, 0, 1].map(|memory| vec![KernelArgument::Scratch(memory)]);
        commands.splice(1..1, sort::launches(kernels, module, (&keys, label), &arrays));
    }
    Some(PlannedSequence { scratch, commands, ..PlannedSequence::default() })
}
