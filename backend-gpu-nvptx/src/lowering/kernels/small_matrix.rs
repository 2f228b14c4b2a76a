//! Factorisation and solution of small matrices as one launch.

use xla_hlo::{Module, Op};
use xla_llvm::fused::SmallMatrixPlan;
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans the launch of a `cholesky` or a `triangular-solve`; `None` if no kernel can do it.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
) -> Option<PlannedSequence> {
    let plan = match (cx.instruction().op(), cx.operands) {
        (Op::Cholesky(op), [a]) => SmallMatrixPlan::cholesky(op, &a.shape)?,
        (Op::TriangularSolve(op), [a, b]) => SmallMatrixPlan::triangular_solve(op, &a.shape, &b.shape)?,
        _ => return None,
    };
    let arguments = (0..plan.words()).map(KernelArgument::Array).collect();
    let label = cx.instruction().name().to_string();
    let kernel = kernels.number(KernelCode::SmallMatrix { module, computation: cx.computation, plan, label });
    Some(PlannedSequence { commands: vec![PlannedCommand::Launch { kernel, arguments }], ..PlannedSequence::default() })
}
