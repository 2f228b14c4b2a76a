//! Launches of a plan, without the plan's type.

use super::KernelPlan;
use super::code::KernelCode;
use super::command::PlanCommand;
use crate::fused::source::KernelSource;

/// Plan of a kernel kind: the code of its kernels, and its commands.
#[derive(Clone, Debug)]
pub struct LaunchPlan<'m> {
    /// Size of each scratch memory in bytes.
    pub scratch: Vec<usize>,
    /// Increment of the device's random counter, if random numbers are drawn.
    pub rng_delta: Option<i64>,
    /// Code of the kernels.
    pub codes: Vec<KernelCode<'m>>,
    /// Commands in order; a launch refers to a kernel by its index in `codes`.
    pub commands: Vec<PlanCommand<usize>>,
}

impl<'m> LaunchPlan<'m> {
    /// Returns the launches of a plan for a source.
    pub fn new<P: KernelPlan>(plan: &P, source: &KernelSource<'m>) -> LaunchPlan<'m> {
        let phases = plan.phases();
        let number = |phase: P::Phase| phases.iter().position(|&other| other == phase).unwrap_or(phases.len());
        LaunchPlan {
            scratch: plan.scratch_bytes(),
            rng_delta: plan.rng_delta(source),
            codes: phases.iter().map(|&phase| plan.code(source, phase)).collect(),
            commands: plan.commands(source).into_iter().map(|command| command.map(number)).collect(),
        }
    }
}
