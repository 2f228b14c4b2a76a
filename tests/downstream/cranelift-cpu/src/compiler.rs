//! Compiler: runs the standard stages, then creates a kernel or library call for each instruction that can be lowered.

use std::sync::Arc;

use xla::hlo::{Result, VerifiedModule};
use xla::passes::buffers::BufferOptions;
use xla::service::compiler::LoadExecutable;
use xla::service::host::HostTransfer;
use xla::service::thunks::{ThunkExecutable, ThunkProgram};
use xla::service::{CompileOptions, Compiler, Executable, HloPasses, OptimizedModule, optimize, serialized};

use crate::capabilities::{NAME, profile};
use crate::lowering::CraneliftLowering;

#[derive(Debug)]
pub(crate) struct CraneliftCompiler;

impl Compiler for CraneliftCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        Ok(optimize(module, &passes(options), options, None)?.0)
    }

    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        Ok(Some(passes(options)))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let mut lowering = CraneliftLowering::new(&module)?;
        let program = ThunkProgram::new(&module, &mut lowering, &HostTransfer, &BufferOptions::default(), options)?;
        let launcher = Arc::new(lowering.finish(options.thread_count())?);
        Ok(Arc::new(ThunkExecutable::new(module, program, launcher).serialized_for(NAME)))
    }

    fn loader(&self) -> Option<&dyn LoadExecutable> {
        Some(self)
    }
}

impl LoadExecutable for CraneliftCompiler {
    /// Lowers the serialized module.
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        self.run_backend(serialized::read(NAME, bytes)?.module, options)
    }

    /// Returns `None`, since loading compiles again.
    fn cache_target(&self) -> Option<String> {
        None
    }

    fn holds_host_code(&self) -> bool {
        false
    }
}

fn passes(options: &CompileOptions) -> HloPasses {
    HloPasses::for_level(options.opt_level, profile(options.thread_count()))
}
