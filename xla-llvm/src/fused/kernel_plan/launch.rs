//! Launches of a plan, without the plan's type.

use super::KernelPlan;
use super::code::KernelCode;
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

/// Command of a plan. A launch refers to a function of type `F`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanCommand<F> {
    /// Launch of a kernel.
    Launch {
        /// Function to launch.
        function: F,
        /// Arguments, one 64-bit word each: first addresses, then numbers.
        arguments: Vec<PlanArgument>,
    },
    /// Copy of an operand to a result, unless they share memory.
    Copy {
        /// Index of the operand.
        operand: usize,
        /// Index of the result.
        result: usize,
    },
}

/// Argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanArgument {
    /// Address of an array of the instruction: operands, then results.
    Array(usize),
    /// Address of a scratch memory.
    Scratch(usize),
    /// Half of the random counter before it is advanced: low (0) or high (1).
    Counter(usize),
    /// 64-bit integer.
    Number(i64),
}

impl<F> PlanCommand<F> {
    /// Returns a launch.
    pub fn launch(function: F, arguments: impl IntoIterator<Item = PlanArgument>) -> PlanCommand<F> {
        PlanCommand::Launch { function, arguments: arguments.into_iter().collect() }
    }

    /// Converts the function of a launch.
    pub fn map<G>(self, convert: impl FnOnce(F) -> G) -> PlanCommand<G> {
        match self {
            PlanCommand::Launch { function, arguments } => {
                PlanCommand::Launch { function: convert(function), arguments }
            }
            PlanCommand::Copy { operand, result } => PlanCommand::Copy { operand, result },
        }
    }
}

impl PlanArgument {
    /// Returns the first `count` arrays, then a scratch memory if there is one.
    pub fn arrays(count: usize, scratch: Option<usize>) -> impl Iterator<Item = PlanArgument> {
        (0..count).map(PlanArgument::Array).chain(scratch.map(PlanArgument::Scratch))
    }
}

impl<'m> LaunchPlan<'m> {
    /// Returns the launches of a plan for a source.
    pub fn new<P: KernelPlan>(plan: &P, source: &KernelSource<'m>) -> LaunchPlan<'m> {
        let phases = plan.phases();
        let number = |phase: P::Phase| phases.iter().position(|&other| other == phase).unwrap_or(phases.len());
        LaunchPlan {
            scratch: plan.scratch_bytes(),
            rng_delta: plan.rng_delta(),
            codes: phases.iter().map(|&phase| plan.code(source, phase)).collect(),
            commands: plan.commands(source).into_iter().map(|command| command.map(number)).collect(),
        }
    }
}
