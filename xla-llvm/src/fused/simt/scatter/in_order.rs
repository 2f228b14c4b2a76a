//! Scatter whose updates one thread combines in order.

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::emitter::Emitter;
use crate::fused::emit::emit_function;
use crate::fused::kernel::Kernel;
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::simt::scatter::plan::copies;
use crate::fused::source::KernelSource;
use crate::fused::support::is_scalar_computation;
use crate::target::Target;

/// Plan of a scatter that is not a [`ThreadedScatter`](super::plan::ThreadedScatter): one kernel, after copies of the
/// inputs to the results.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedScatter;

impl KernelPlan for OrderedScatter {
    type Phase = ();

    const NAME: &'static str = "ordered-scatter";
    const READS_SOURCE: bool = true;

    /// Returns the plan of a `scatter`. `None` if the combiner does not compute scalars, or shapes are dynamic.
    fn new(source: &KernelSource<'_>, _: &Target) -> Option<OrderedScatter> {
        let Op::Scatter(op) = source.instruction().op() else { return None };
        let is_static = source.input_shapes()?.iter().all(|shape| shape.is_static());
        (is_static && is_scalar_computation(source.module, op.computation)).then_some(OrderedScatter)
    }

    fn phases(&self) -> Vec<()> {
        vec![()]
    }

    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<()>> {
        let mut commands = copies(source);
        commands.push(PlanCommand::launch((), PlanArgument::arrays(source.pointer_count(), None)));
        commands
    }

    fn emit(&self, source: &KernelSource<'_>, (): (), emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        emit_function(emitter, source, name, None)
    }
}
