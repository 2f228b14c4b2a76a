//! Compiler: runs the standard stages for this machine, then builds thunks, kernels and the entry function.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use xla_cpu_runtime::Helpers;
use xla_hlo::{Result, VerifiedModule};
use xla_llvm::codegen::CodeKind;
use xla_llvm::driver::{CodegenDriver, ModuleSize};
use xla_llvm::emitter::EmitOptions;
use xla_llvm::target::Target;
use xla_passes::buffers::BufferOptions;
use xla_service::compiler::{AheadOfTimeCompiler, AotFile, LoadExecutable};
use xla_service::host::{HostTransfer, dirt};
use xla_service::serialized::SerializedProgram;
use xla_service::thunks::ThunkProgram;
use xla_service::{
    AotCompilationOptions, CompileOptions, Compiler, Executable, HloPasses, OptimizedModule, optimize, serialized,
};

use crate::aot;
use crate::capabilities::{self, profile};
use crate::executable::CpuExecutable;
use crate::lowering::{CpuLowering, host_calls};
use crate::options::{CpuOptions, NAME};
use crate::program::codegen::{self, Code};
use crate::program::machine_code;
use crate::program::sequence::Plan;

#[derive(Debug)]
pub(crate) struct CpuCompiler {
    options: CpuOptions,
    /// Helper threads for parallel loops; `None` for the process's own pool.
    helpers: Option<Arc<Helpers>>,
    /// Target, created on first use because this requires a query to LLVM.
    target: OnceLock<Target>,
    /// Number of programs compiled so far.
    compiled: AtomicU64,
}

impl Compiler for CpuCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        Ok(optimize(module, &self.hlo_passes(options)?, options, None)?.0)
    }

    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        Ok(Some(self.hlo_passes(options)?))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        self.executable(module, options, &[])
    }

    fn has_collectives(&self) -> bool {
        true
    }

    fn ahead_of_time(&self) -> Option<&dyn AheadOfTimeCompiler> {
        Some(self)
    }

    fn loader(&self) -> Option<&dyn LoadExecutable> {
        Some(self)
    }
}

impl AheadOfTimeCompiler for CpuCompiler {
    fn compile_ahead_of_time(
        &self,
        modules: Vec<VerifiedModule>,
        options: &AotCompilationOptions,
    ) -> Result<Vec<AotFile>> {
        aot::compile(modules, options, self.options.generators)
    }
}

impl LoadExecutable for CpuCompiler {
    /// Uses the stored machine code if this compiler build generated it for this processor; otherwise generates it
    /// again from the module.
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let SerializedProgram { module, code } = serialized::read(NAME, bytes)?;
        self.executable(module, options, &code)
    }

    fn cache_target(&self) -> Option<String> {
        // Dirty code differs at each compilation, so it is not cached.
        self.target().ok().filter(|_| !self.options.dirty).map(|target| machine_code::target_key(&target))
    }
}

impl CpuCompiler {
    pub fn new(options: CpuOptions) -> CpuCompiler {
        let helpers = options.pool.clone().map(Helpers::of);
        CpuCompiler { options, helpers, target: OnceLock::new(), compiled: AtomicU64::new(0) }
    }

    /// Returns the target of code generation; `InvalidArgument` for an unknown processor name.
    pub fn target(&self) -> Result<Target> {
        if let Some(target) = self.target.get() {
            return Ok(target.clone());
        }
        let target = self.options.cpu.target()?;
        Ok(self.target.get_or_init(|| target).clone())
    }

    /// Builds the executable of a module: its thunks, and the stored code if it matches or newly generated code.
    fn executable(
        &self,
        module: OptimizedModule,
        options: &CompileOptions,
        written: &[u8],
    ) -> Result<Arc<dyn Executable>> {
        let target = self.target()?;
        let mut lowering = CpuLowering::new(&module, &target, options);
        let program = ThunkProgram::new(&module, &mut lowering, &HostTransfer, &BufferOptions::default(), options)?;
        let compiled_for = machine_code::compiled_for(&target, options);
        let code = match machine_code::read(&compiled_for, &program, written) {
            Some(machine) => Code { machine, texts: Vec::new() },
            None => self.generate(&target, lowering, &program, options)?,
        };
        Ok(Arc::new(CpuExecutable::new(module, program, code, compiled_for, self.helpers.clone())?))
    }

    fn generate(
        &self,
        target: &Target,
        lowering: CpuLowering<'_>,
        program: &ThunkProgram,
        options: &CompileOptions,
    ) -> Result<Code> {
        let CpuLowering { kernels, library_calls, .. } = lowering;
        let threads = options.thread_count();
        let number = self.compiled.fetch_add(1, Ordering::Relaxed);
        let dirt = self.options.dirty.then(|| dirt(number));
        let prefetch = capabilities::reads_main_memory(program.assignment.total_bytes());
        let emission = EmitOptions {
            round_each_operation: !options.excess_precision,
            flush_denormals: options.flush_denormals,
            dirt,
            threads,
            prefetch,
            ..EmitOptions::default()
        };
        let with_texts = options.dump_to.is_some();
        let (modules, kind) = (ModuleSize::ByThreads, CodeKind::Object);
        let driver = CodegenDriver { target, threads, modules, with_texts, emission, kind };
        let is_checked = self.options.dirty && self.options.cpu.is_executable();
        let checks = if is_checked { kernels.overwrites() } else { &[] };
        codegen::generate(&driver, kernels.sources(), checks, &|kernels| {
            let host_calls = host_calls(&program.sequence).map(|t| t.id).collect();
            Ok(Plan {
                sequence: program.sequence.clone(),
                kernels,
                library_calls: library_calls.clone(),
                host_calls,
                external_calls: Vec::new(),
                threads,
                self_contained: false,
            })
        })
    }

    /// Returns the standard stages for the target; at level `O0`, only the stages that the backend needs.
    fn hlo_passes(&self, options: &CompileOptions) -> Result<HloPasses> {
        let profile = profile(&self.target()?, options.thread_count(), options.excess_precision);
        Ok(HloPasses::for_level(options.opt_level, profile))
    }
}
