//! Compiler: runs the standard pass stages for this hardware, then lowers each instruction to a kernel.

use std::sync::Arc;

use xla_hlo::{Result, VerifiedModule};
use xla_passes::buffers::BufferOptions;
use xla_service::compiler::LoadExecutable;
use xla_service::thunks::{ThunkExecutable, ThunkProgram};
use xla_service::{CompileOptions, Compiler, Executable, HloPasses, OptimizedModule, optimize, serialized};

use crate::capabilities::{MEMORY_ALIGNMENT, NAME, REUSE_AFTER, profile, stream_profile, thunk_cost};
use crate::executable::TemplateLauncher;
use crate::lowering::TemplateLowering;
use crate::transfer::TemplateTransfer;

/// Compiler of the platform.
#[derive(Debug)]
pub(crate) struct TemplateCompiler {
    /// Number of streams that one program may use.
    pub streams: u32,
}

impl Compiler for TemplateCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        Ok(optimize(module, &passes(options), options, None)?.0)
    }

    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        Ok(Some(passes(options)))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let mut lowering = TemplateLowering::default();
        let reuse_after = if self.streams > 1 { REUSE_AFTER } else { 0 };
        let buffers = BufferOptions { alignment: MEMORY_ALIGNMENT, reuse_after, ..BufferOptions::default() };
        let mut program = ThunkProgram::new(&module, &mut lowering, &TemplateTransfer, &buffers, options)?;
        if self.streams > 1 {
            program.assign_streams(&stream_profile(self.streams), &thunk_cost)?;
        }
        let launcher = Arc::new(TemplateLauncher::new(lowering.kernels));
        Ok(Arc::new(ThunkExecutable::new(module, program, launcher).serialized_for(NAME)))
    }

    /// The service executes collectives on the host. VENDOR(collectives): lower them to the links of your devices.
    fn has_collectives(&self) -> bool {
        true
    }

    fn loader(&self) -> Option<&dyn LoadExecutable> {
        Some(self)
    }
}

impl LoadExecutable for TemplateCompiler {
    /// Lowers the serialised module again. Results of slow compilation can be stored next to the module; see
    /// [`serialized`].
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        self.run_backend(serialized::read(NAME, bytes)?.module, options)
    }

    /// Returns `None`, because loading compiles the module again and a cache would save nothing.
    fn cache_target(&self) -> Option<String> {
        None
    }

    fn holds_host_code(&self) -> bool {
        false
    }
}

// VENDOR(passes): choose the pass stages and their order; insert your own passes where they belong.
/// Returns the standard stages; at level `O0`, only the stages that every program needs.
fn passes(options: &CompileOptions) -> HloPasses {
    HloPasses::for_level(options.opt_level, profile())
}
