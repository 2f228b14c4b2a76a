//! Options of the CPU platform: the processor that code is for, the threads that help, checks for tests.

use std::sync::Arc;

use rayon::ThreadPool;
use xla_hlo::Result;
pub use xla_llvm::target::CodeGenerators;
pub use xla_llvm::target::HOST_CPUS as TARGET_CPUS;
use xla_llvm::target::Target;

/// The name of the platform.
pub const NAME: &str = "cpu";

/// Options of the CPU platform.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// The processor that code is generated for; this machine's unless given.
    pub cpu: TargetCpu,
    /// Whether memory gets other contents at each allocation, and a kernel's stack and masked lanes at each
    /// compilation. A program that is run twice, or compiled and run twice, then returns other results if they depend
    /// on uninitialised memory. Kernels that store results over their inputs are run when they are compiled, too, and
    /// must return the bits of a run in separate memory.
    pub dirty: bool,
    /// The threads that help with loops; the process's rayon pool unless one is given. A caller takes part in its own
    /// loops, and waits for no helper that has not begun.
    pub pool: Option<Arc<ThreadPool>>,
    /// The kinds of processor that files can be compiled for ahead of time; this machine's unless more are given.
    pub generators: CodeGenerators,
}

/// The processor that code is generated for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum TargetCpu {
    /// This machine's, with all its features.
    #[default]
    Native,
    /// The processor of that name, one of [`TARGET_CPUS`], without instructions that this machine cannot execute.
    Executable(String),
    /// The processor of that name, one of [`TARGET_CPUS`]: programs compile, but this machine may be unable to run
    /// them.
    Whole(String),
}

impl TargetCpu {
    /// Whether this machine executes the code.
    pub(crate) fn is_executable(&self) -> bool {
        match self {
            TargetCpu::Native | TargetCpu::Executable(_) => true,
            TargetCpu::Whole(_) => false,
        }
    }

    /// The target; `InvalidArgument` for a processor of an unknown name.
    pub(crate) fn target(&self) -> Result<Target> {
        match self {
            TargetCpu::Native => Target::host(),
            TargetCpu::Executable(name) => Target::host_as(name),
            TargetCpu::Whole(name) => Target::whole(name),
        }
    }
}
