//! Work of one kernel, which one of the strategies computes.

use xla_hlo::Result;

use super::KernelPlan;
use super::command::{PlanArgument, PlanCommand};
use crate::emitter::Emitter;
use crate::fused::emit::emit_function;
use crate::fused::kernel::Kernel;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::source::KernelSource;
use crate::fused::strategy::list::Chosen;
use crate::target::Target;

/// Plan of a fusion, or of an operation that is a [kernel root](crate::fused::is_kernel_root), as one kernel.
///
/// It is the last kind that is tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SingleKernel {
    /// Tiling of a matmul instead of the strategy that is chosen by rule.
    pub(crate) tiling: Option<Tiling>,
}

impl KernelPlan for SingleKernel {
    type Phase = ();

    const NAME: &'static str = "single-kernel";
    const READS_SOURCE: bool = true;

    fn new(source: &KernelSource<'_>, _: &Target) -> Option<SingleKernel> {
        source.has_strategy().then(SingleKernel::default)
    }

    fn phases(&self) -> Vec<()> {
        vec![()]
    }

    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<()>> {
        vec![PlanCommand::launch((), PlanArgument::arrays(source.pointer_count(), None))]
    }

    fn emit(&self, source: &KernelSource<'_>, (): (), emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        emit_function(emitter, source, name, self.tiling.map(Chosen::new))
    }
}
