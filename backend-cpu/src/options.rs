//! Options of the CPU platform: target processor, helper threads, checks for tests.

use std::sync::Arc;

use rayon::ThreadPool;
use xla_hlo::Result;
pub use xla_llvm::target::CodeGenerators;
pub use xla_llvm::target::HOST_CPUS as TARGET_CPUS;
use xla_llvm::target::Target;

/// Name of the platform.
pub const NAME: &str = "cpu";

/// Options of the CPU platform.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Processor that code is generated for; by default this machine's.
    pub cpu: TargetCpu,
    /// Whether memory gets different contents at each allocation, and a kernel's stack and masked lanes at each
    /// compilation. If results depend on uninitialised memory, they then differ between runs or between compilations.
    /// On Linux, an access past the end of an allocation ends the process. In addition, kernels that store results over
    /// their inputs are executed at compile time and must return the same bits as with separate memory.
    pub dirty: bool,
    /// Helper threads for parallel loops; by default the process's rayon pool. The calling thread takes part in its own
    /// loops, and does not wait for helpers that have not started.
    pub pool: Option<Arc<ThreadPool>>,
    /// Code generators for ahead-of-time compilation; by default only this machine's architecture.
    pub generators: CodeGenerators,
}

/// Processor that code is generated for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum TargetCpu {
    /// Processor of this machine, with all its features.
    #[default]
    Native,
    /// Processor with this name, one of [`TARGET_CPUS`], restricted to instructions that this machine can execute.
    Executable(String),
    /// Processor with this name, one of [`TARGET_CPUS`]. Programs compile, but this machine may be unable to run them.
    Whole(String),
}

impl TargetCpu {
    /// Whether this machine can execute the code.
    pub(crate) fn is_executable(&self) -> bool {
        match self {
            TargetCpu::Native | TargetCpu::Executable(_) => true,
            TargetCpu::Whole(_) => false,
        }
    }

    /// Returns the target; `InvalidArgument` for an unknown processor name.
    pub(crate) fn target(&self) -> Result<Target> {
        match self {
            TargetCpu::Native => Target::host(),
            TargetCpu::Executable(name) => Target::host_as(name),
            TargetCpu::Whole(name) => Target::whole(name),
        }
    }
}
