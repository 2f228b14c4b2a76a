//! Compiler of builds without LLVM: loads programs that were compiled elsewhere, and rejects all others.

use std::sync::Arc;

use xla_hlo::{Error, Result, VerifiedModule};
use xla_service::compiler::LoadExecutable;
use xla_service::{CompileOptions, Compiler, Executable, OptimizedModule};

use crate::program::caches::AllCaches;
use crate::program::loading;

/// Loader of compiled programs for the GPUs of this machine.
#[derive(Debug)]
pub(crate) struct GpuCompiler(Arc<AllCaches>);

impl GpuCompiler {
    /// Returns a loader whose programs share `caches`.
    pub fn for_gpus(caches: Arc<AllCaches>) -> GpuCompiler {
        GpuCompiler(caches)
    }
}

impl Compiler for GpuCompiler {
    fn run_hlo_passes(&self, _: VerifiedModule, _: &CompileOptions) -> Result<OptimizedModule> {
        Err(left_out())
    }

    fn run_backend(&self, _: OptimizedModule, _: &CompileOptions) -> Result<Arc<dyn Executable>> {
        Err(left_out())
    }

    fn loader(&self) -> Option<&dyn LoadExecutable> {
        Some(self)
    }
}

impl LoadExecutable for GpuCompiler {
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        loading::load_for_gpu(bytes, options, &self.0)
    }

    /// Returns `None`: the cubin cache stores kernels one by one.
    fn cache_target(&self) -> Option<String> {
        None
    }

    fn holds_host_code(&self) -> bool {
        false
    }
}

fn left_out() -> Error {
    Error::failed_precondition(
        "this build runs programs for GPUs but cannot compile them: compile with a build that has the Cargo feature \"gpu\" (`xla compile --platform gpu`), \
         and run the executable here (`xla run --executable`)",
    )
}
