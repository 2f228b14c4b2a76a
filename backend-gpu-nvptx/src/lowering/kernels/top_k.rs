//! Top-k of rows as a launch.

use xla_hlo::Module;
use xla_hlo::ops::TopK;
use xla_llvm::fused::TopKPlan;
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// The launch of a `topk`; `None` for element types that no kernel has.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    op: &TopK,
) -> Option<PlannedSequence> {
    let plan = TopKPlan::new(op, &cx.operands.first()?.shape)?;
    let label = cx.instruction().name().to_string();
    let kernel = kernels.number(KernelCode::TopK { module, computation: cx.computation, plan, label });
    let arguments = (0..TopKPlan::WORDS).map(KernelArgument::Array).collect();
    Some(PlannedSequence { commands: vec![PlannedCommand::Launch { kernel, arguments }], ..PlannedSequence::default() })
}
