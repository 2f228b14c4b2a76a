//! The few best elements of rows as a launch.

use xla_hlo::Module;
use xla_hlo::ops::TopK;
use xla_llvm::fused::TopKPlan;
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::compile::lowering::{Plan, PlannedStep};
use crate::device::Word;

/// The launch of a `topk`; `None` for element types that no kernel has.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    op: &TopK,
) -> Option<Plan> {
    let plan = TopKPlan::new(op, &cx.operands.first()?.shape)?;
    let label = cx.instruction().name().to_string();
    let kernel = kernels.number(KernelCode::TopK { module, computation: cx.computation, plan, label });
    let arguments = (0..TopKPlan::WORDS).map(Word::Array).collect();
    Some(Plan { steps: vec![PlannedStep::Launch { kernel, arguments }], ..Plan::default() })
}
