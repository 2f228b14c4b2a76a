//! The platform: names the parts.

use std::sync::Arc;

use xla_hlo::{Error, Result};
pub use xla_llvm::target::HOST_CPUS as TARGET_CPUS;
use xla_llvm::target::Target;
use xla_service::platform::no_such_device;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::compiler::CpuCompiler;
use crate::{executor, transfer};

/// The name of the platform.
pub const NAME: &str = "cpu";

/// The CPU platform. It has one device: the host with all its cores.
pub fn platform() -> Arc<dyn Platform> {
    platform_with(CpuOptions::default())
}

/// The CPU platform with options of its own. Its name is that of the usual one, so a compilation cache must not be
/// shared between clients of the two.
pub fn platform_with(options: CpuOptions) -> Arc<dyn Platform> {
    Arc::new(CpuPlatform { executor: executor::host(options.dirty), compiler: Arc::new(CpuCompiler::new(options)) })
}

/// What code is generated for and how it is checked, for tests of code generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuOptions {
    /// The processor that code is generated for; this machine's unless given.
    pub cpu: TargetCpu,
    /// Whether all memory holds something else each time that it is allocated, and what a kernel has on its stack or
    /// leaves out of a load something else each time that a program is compiled. A program that is run twice, or
    /// compiled and run twice, then gives other results if they depend on what nobody wrote.
    pub dirty: bool,
}

/// The processor that code is generated for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum TargetCpu {
    /// This machine's, with all its features.
    #[default]
    Native,
    /// The processor of that name, one of [`TARGET_CPUS`], without what this machine cannot execute.
    Executable(String),
    /// The processor of that name, one of [`TARGET_CPUS`]: programs compile, but this machine may be unable to run
    /// them.
    Whole(String),
}

impl TargetCpu {
    /// The target; `InvalidArgument` for a processor of an unknown name.
    pub(crate) fn target(&self) -> Result<Target> {
        match self {
            TargetCpu::Native => Target::host(),
            TargetCpu::Executable(name) => Target::host_as(name),
            TargetCpu::Whole(name) => Target::whole(name),
        }
    }
}

#[derive(Debug)]
struct CpuPlatform {
    executor: Arc<dyn StreamExecutor>,
    compiler: Arc<CpuCompiler>,
}

impl Platform for CpuPlatform {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self) -> Result<()> {
        self.compiler.target().map(|_| ()).map_err(|error| {
            Error::failed_precondition(format!("LLVM cannot generate code for this machine: {}", error.message()))
                .with_source(error)
        })
    }

    fn device_count(&self) -> usize {
        usize::from(self.check().is_ok())
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(no_such_device(NAME, ordinal, 1)) }
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        self.compiler.clone()
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        transfer::manager()
    }
}
