//! Top-k of rows as launches: one, or one for chunks of long rows and one that merges their results.

use xla_hlo::Module;
use xla_hlo::ops::TopK;
use xla_llvm::fused::{TopKPhase, TopKPlan};
use xla_llvm::target::Target;
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans the launches of a `topk`. `None` if no kernel supports the element type, or for too many elements of a row.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    op: &TopK,
    target: &Target,
) -> Option<PlannedSequence> {
    let plan = TopKPlan::new(op, &cx.operands.first()?.shape, target)?;
    let [operand, values, places] = [0, 1, 2].map(KernelArgument::Array);
    let items = KernelArgument::Scratch(0);
    let launch = |&phase: &TopKPhase| {
        let label = cx.instruction().name().to_string();
        let code = KernelCode::TopK { module, computation: cx.computation, plan: plan.clone(), phase, label };
        let arguments = match phase {
            TopKPhase::Rows => vec![operand, values, places],
            TopKPhase::Chunks => vec![operand, items],
            TopKPhase::Merge => vec![operand, values, places, items],
        };
        PlannedCommand::Launch { kernel: kernels.number(code), arguments }
    };
    let commands = plan.phases().iter().map(launch).collect();
    Some(PlannedSequence { scratch: plan.item_bytes().into_iter().collect(), commands, ..PlannedSequence::default() })
}
