//! Scatters as launches: one for the updates, and two before it where they must claim their places.

use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, Module};
use xla_llvm::fused::ThreadedScatter;
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::compile::lowering::{Plan, PlannedStep};
use crate::device::Word;

/// Launches that scatter into the result, which holds the input; `None` where the updates must go in order.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    scatter: &Scatter,
) -> Option<Plan> {
    let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
    let scatter = Box::new(ThreadedScatter::new(module, scatter, &shapes)?);
    let label = cx.instruction().name();
    let claims = scatter.claim_bytes();
    let steps = scatter.phases().iter().map(|&phase| {
        let (scatter, label) = (scatter.clone(), label.to_string());
        let kernel = kernels.number(KernelCode::Scatter { module, scatter, phase, label });
        let arguments = (1..=3).map(Word::Array).chain(claims.map(|_| Word::Scratch(0))).collect();
        PlannedStep::Launch { kernel, arguments }
    });
    let steps = steps.collect();
    Some(Plan { scratch: claims.into_iter().collect(), steps, ..Plan::default() })
}
