//! Kernel that stores the random counter, which the host advances when it sends the launch.
//!
//! All programs of a device therefore draw from one counter, in the order of their launches, even if the host evaluates
//! parts of them.

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::denormals::Denormals;
use crate::emitter::Emitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::source::KernelSource;
use crate::target::Target;

/// Plan of an `rng-get-and-update-state`. The words are the address of the result, and the halves of the counter.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomCounter;

impl KernelPlan for RandomCounter {
    type Phase = ();

    const NAME: &'static str = "random-counter";
    const READS_SOURCE: bool = false;

    fn new(source: &KernelSource<'_>, _: &Target) -> Option<RandomCounter> {
        matches!(source.instruction().op(), Op::RngGetAndUpdateState(_)).then_some(RandomCounter)
    }

    fn phases(&self) -> Vec<()> {
        vec![()]
    }

    fn commands(&self, _: &KernelSource<'_>) -> Vec<PlanCommand<()>> {
        let arguments = [PlanArgument::Array(0), PlanArgument::Counter(0), PlanArgument::Counter(1)];
        vec![PlanCommand::launch((), arguments)]
    }

    fn rng_delta(&self, source: &KernelSource<'_>) -> Option<i64> {
        match source.instruction().op() {
            Op::RngGetAndUpdateState(op) => Some(op.delta),
            _ => None,
        }
    }

    fn describe(&self, (): ()) -> String {
        "serial".to_string()
    }

    fn label<'a>(_: &'a KernelSource<'_>) -> &'a str {
        "counter"
    }

    /// Emits the kernel: one thread stores both halves.
    fn emit(&self, _: &KernelSource<'_>, (): (), emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let kernel = emitter.simt_kernel(name, 1, 2)?;
        for (place, &half) in (0..).zip(&kernel.numbers) {
            let half = emitter.lanes(half);
            emitter.store_lanes(half, kernel.pointers[0], half.int(place), None);
        }
        let launch = Launch { work_items: 1, block: Some(1) };
        let ended = Kernel::end(emitter, name, launch, self.describe(()))?;
        Ok(Kernel { denormals: Denormals::Unaffected, ..ended })
    }
}
