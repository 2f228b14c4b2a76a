//! The compiler: the standard stages for GPUs, then a routine for each thunk, and the code of its kernels.

use std::sync::Arc;

use xla_hlo::{Error, Result, VerifiedModule};
use xla_llvm::target::Target;
use xla_passes::buffers::BufferOptions;
use xla_passes::stages;
use xla_service::compiler::{AheadOfTimeCompiler, AotFile};
use xla_service::thunks::ThunkProgram;
use xla_service::{
    AotCompilationOptions, CompileOptions, Compiler, Executable, HloPasses, OptLevel, OptimizedModule, optimize,
};

use crate::capabilities::{MEMORY_ALIGNMENT, REUSE_AFTER, ThunkCosts, profile, streams};
use crate::codegen::{self, Code};
use crate::cuda::driver::Driver;
use crate::device::{Part, Routine};
use crate::executable::GpuExecutable;
use crate::lowering::GpuLowering;
use crate::transfer::GpuTransfer;

/// The architecture that code is generated for where neither a device nor the options name one.
const DEFAULT_ARCHITECTURE: &str = "sm_90";

/// What code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    /// A GPU.
    Gpu,
    /// The host in the place of one.
    Host,
}

/// Compiles for one kind of device.
#[derive(Debug)]
pub(crate) struct GpuCompiler(pub DeviceKind);

impl Compiler for GpuCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        Ok(optimize(module, &passes(options), options, None)?.0)
    }

    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        Ok(Some(passes(options)))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let target = match self.0 {
            DeviceKind::Host => Target::host_threads()?,
            DeviceKind::Gpu => Target::nvptx(&architecture()?)?,
        };
        let compiled = compile(&module, &target, options)?;
        Ok(Arc::new(GpuExecutable::new(module, compiled, self.0)?))
    }

    fn ahead_of_time(&self) -> Option<&dyn AheadOfTimeCompiler> {
        (self.0 == DeviceKind::Gpu).then_some(self)
    }
}

impl AheadOfTimeCompiler for GpuCompiler {
    fn compile_ahead_of_time(&self, module: OptimizedModule, options: &AotCompilationOptions) -> Result<Vec<AotFile>> {
        let target = Target::nvptx(options.target.as_deref().unwrap_or(DEFAULT_ARCHITECTURE))?;
        let compiled = compile(&module, &target, &options.compile)?;
        let files = compiled.code.image.parts.into_iter().enumerate().map(|(number, part)| match part {
            Part::Ptx(text) => Ok(AotFile { name: format!("kernels.{number}.ptx"), bytes: text.into_bytes() }),
            Part::Cubin(_) | Part::HostObject(_) => Err(Error::internal("code for a GPU that is no PTX")),
        });
        files.collect()
    }
}

/// That of the first GPU; that of current ones where there is none.
fn architecture() -> Result<String> {
    let Ok(driver) = Driver::get() else { return Ok(DEFAULT_ARCHITECTURE.to_string()) };
    let (major, minor) = driver.device(0)?.capability;
    Ok(format!("sm_{major}{minor}"))
}

/// A program for a device.
pub(crate) struct Compiled {
    pub program: ThunkProgram,
    pub routines: Vec<Routine>,
    pub code: Code,
}

fn compile(module: &OptimizedModule, target: &Target, options: &CompileOptions) -> Result<Compiled> {
    let mut lowering = GpuLowering::new(module);
    let buffers = BufferOptions { alignment: MEMORY_ALIGNMENT, reuse_after: REUSE_AFTER, ..BufferOptions::default() };
    let mut program = ThunkProgram::new(module, &mut lowering, &GpuTransfer, &buffers, options)?;
    let costs = ThunkCosts::new(module);
    program.assign_streams(&streams(), &|thunk| costs.of(thunk))?;
    let with_texts = options.dump_to.is_some();
    let code = codegen::generate(target, lowering.kernels.codes(), options.thread_count(), with_texts)?;
    let routines = lowering.routines(&code.kernels)?;
    Ok(Compiled { program, routines, code })
}

/// The standard stages; without optimisation, those that programs cannot do without.
fn passes(options: &CompileOptions) -> HloPasses {
    let profile = profile();
    let pipeline = match options.opt_level {
        OptLevel::O0 => stages::needed(&profile),
        OptLevel::O1 | OptLevel::O2 | OptLevel::O3 => stages::standard(&profile),
    };
    HloPasses { pipeline, profile }
}
