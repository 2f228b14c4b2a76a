//! Commands of a plan: launches and copies, with their arguments.

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
