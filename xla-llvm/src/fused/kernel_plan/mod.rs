//! Kinds of kernels: each is a plan of launches for one instruction or fusion, with the scratch memory between them.
//!
//! ```text
//! mod.rs      the trait that each kind implements
//! kinds.rs    the list of kinds; the first one that applies is used
//! launch.rs   a plan without its type: code of the kernels, and commands
//! command.rs  launches and copies, with their arguments
//! code.rs     code of a kernel that is emitted later, and its identity
//! single.rs   the kind for everything else: one kernel, by one of the strategies
//! ```

pub(crate) mod code;
pub(crate) mod command;
pub(crate) mod kinds;
pub(crate) mod launch;
pub(crate) mod single;

use std::fmt;

use xla_hlo::{Result, ResultExt};

use crate::emitter::Emitter;
use crate::fused::kernel::Kernel;
use crate::fused::source::KernelSource;
use crate::target::Target;
use code::{Identity, KernelCode, KernelFunction};
use command::PlanCommand;

/// Kind of kernel for targets with threads: its work as one or several launches, each of one phase.
///
/// A new kind is a file with an implementation, and a line in [`KERNEL_KINDS`](kinds::KERNEL_KINDS).
pub trait KernelPlan: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Function of the plan.
    type Phase: Copy + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Name of the kind, for messages.
    const NAME: &'static str;

    /// Whether the code depends on the instructions of the source. If not, equal plans have equal code.
    const READS_SOURCE: bool;

    /// Returns the plan of a source's work. `None` for work of another kind, for a target that does not support it, and
    /// if another kind is faster.
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<Self>;

    /// Returns the functions, each once; each has at least one launch.
    fn phases(&self) -> Vec<Self::Phase>;

    /// Returns the commands in order. All launches of a phase have the same number of arguments.
    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<Self::Phase>>;

    /// Returns the size of each scratch memory in bytes.
    fn scratch_bytes(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the increment of the device's random counter, if random numbers are drawn.
    fn rng_delta(&self, _: &KernelSource<'_>) -> Option<i64> {
        None
    }

    /// Describes a phase, for dumps: [`Kernel::strategy`]. Not used by kinds whose kernels name a strategy of the list.
    fn describe(&self, _: Self::Phase) -> String {
        Self::NAME.to_string()
    }

    /// Returns the label of the kernels, for messages and profiles.
    fn label<'a>(source: &'a KernelSource<'_>) -> &'a str {
        source.name()
    }

    /// Emits the function of a phase into the emitter's module, which must be for a target with threads. The source is
    /// the plan's own or, unless the code [depends on it](Self::READS_SOURCE), that of an equal plan.
    fn emit(&self, source: &KernelSource<'_>, phase: Self::Phase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel>;

    /// Returns the code of a phase. A plan that contains another one returns that plan's code for its phases.
    fn code<'m>(&self, source: &KernelSource<'m>, phase: Self::Phase) -> KernelCode<'m> {
        own_code(self, phase, source)
    }
}

/// Returns the code of a phase that is the plan's own.
pub(crate) fn own_code<'m, P: KernelPlan>(plan: &P, phase: P::Phase, source: &KernelSource<'m>) -> KernelCode<'m> {
    KernelCode::new(PlanCode { function: (plan.clone(), phase), source: source.clone() })
}

/// Phase of a plan.
#[derive(Debug)]
struct PlanCode<'m, P: KernelPlan> {
    function: (P, P::Phase),
    source: KernelSource<'m>,
}

impl<'m, P: KernelPlan> KernelFunction<'m> for PlanCode<'m, P> {
    fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let (plan, phase) = &self.function;
        plan.emit(&self.source, *phase, emitter, name).context(|| self.source.context())
    }

    fn label(&self) -> &str {
        P::label(&self.source)
    }

    fn source(&self) -> Option<&KernelSource<'m>> {
        P::READS_SOURCE.then_some(&self.source)
    }

    fn identity(&self) -> Option<&dyn Identity> {
        Some(&self.function)
    }
}
