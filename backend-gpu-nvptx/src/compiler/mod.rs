//! Compiler: runs the standard stages for GPUs, lowers each thunk to a command sequence, and generates code for its
//! kernels.

use std::borrow::Cow;
use std::sync::{Arc, Once};

use xla_hlo::{Error, Module, Opcode, Result, VerifiedModule, proto};
use xla_llvm::driver::ModuleSize;
use xla_llvm::emitter::EmitOptions;
use xla_llvm::target::Target;
use xla_service::compiler::{AheadOfTimeCompiler, AotFile, LoadExecutable};
use xla_service::serialized::check_independent;
use xla_service::{AotCompilationOptions, CompileOptions, Compiler, Executable, HloPasses, OptimizedModule, optimize};

use crate::capabilities::profile;
use crate::cuda::device_profile;
use crate::cuda::driver::Driver;
use crate::cuda::launch::GpuCode;
use crate::cuda::library::fft;
use crate::emulation::{self, EmulatedCode};
use crate::executable::{Compiled, GpuExecutable};
use crate::gpu_profile::GpuProfile;
use crate::lowering::GpuLowering;
use crate::lowering::codegen::{self, GeneratedCode};
use crate::names::EMULATED_NAME;
use crate::names::NAME;
use crate::program::ahead_of_time;
use crate::program::caches::AllCaches;
use crate::program::launcher::DeviceCode;
use crate::program::loading::{self, place};
use crate::program::recorded_lowering::RecordingLowering;
use crate::program::serialized::{self, DeviceProgram};

/// Architecture that code is generated for if neither a device nor the options name one. PTX for it also runs on later
/// GPUs.
const DEFAULT_ARCHITECTURE: &str = "sm_90";

/// Compiler for one kind of device.
#[derive(Clone, Debug)]
pub(crate) enum GpuCompiler {
    /// Compiler for GPUs.
    Gpu(Arc<AllCaches>),
    /// Compiler for the emulated GPU. `Some(n)` selects alternative `n` of every matmul that has alternatives.
    Emulated(Option<usize>),
}

impl GpuCompiler {
    /// Returns a compiler for GPUs whose programs share `caches`.
    pub fn for_gpus(caches: Arc<AllCaches>) -> GpuCompiler {
        GpuCompiler::Gpu(caches)
    }
}

impl Compiler for GpuCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        let has_transforms = self.has_transforms();
        if !has_transforms {
            self.tell_of_transforms(&module);
        }
        Ok(optimize(module, &passes_for(&self.gpu_here(), options, has_transforms), options, None)?.0)
    }

    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        Ok(Some(passes_for(&self.gpu_here(), options, self.has_transforms())))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let target = match self {
            GpuCompiler::Emulated(_) => Target::host_threads()?,
            GpuCompiler::Gpu(_) => {
                Target::nvptx(device_profile::architecture().as_deref().unwrap_or(DEFAULT_ARCHITECTURE))?
            }
        };
        let options = &*self.with_choices(options);
        let compiled = compile(&module, (&target, self.gpu_here()), ModuleSize::ByThreads, options)?;
        let device = compiled.device.clone();
        let code: Box<dyn DeviceCode> = match self {
            GpuCompiler::Emulated(way) => Box::new(EmulatedCode::load(&device.image, way.unwrap_or(0))?),
            GpuCompiler::Gpu(caches) => Box::new(GpuCode::new(device, caches, options)),
        };
        Ok(Arc::new(GpuExecutable::new(self.platform(), module, compiled, code)))
    }

    fn has_collectives(&self) -> bool {
        true
    }

    /// NCCL chooses the order.
    fn reduces_in_rank_order(&self) -> bool {
        matches!(self, GpuCompiler::Emulated(_))
    }

    fn ahead_of_time(&self) -> Option<&dyn AheadOfTimeCompiler> {
        Some(self)
    }

    fn loader(&self) -> Option<&dyn LoadExecutable> {
        Some(self)
    }
}

impl GpuCompiler {
    /// Returns the name of the platform.
    pub fn platform(&self) -> &'static str {
        match self {
            GpuCompiler::Gpu(_) => NAME,
            GpuCompiler::Emulated(_) => EMULATED_NAME,
        }
    }

    /// Returns the options with `autotune` set for the emulated GPU. It measures nothing: alternatives are compiled
    /// only if one of them is selected.
    fn with_choices<'a>(&self, options: &'a CompileOptions) -> Cow<'a, CompileOptions> {
        match self {
            GpuCompiler::Emulated(way) if options.autotune != way.is_some() => {
                Cow::Owned(CompileOptions { autotune: way.is_some(), ..options.clone() })
            }
            GpuCompiler::Gpu(_) | GpuCompiler::Emulated(_) => Cow::Borrowed(options),
        }
    }

    /// Whether cuFFT is available to the programs that this process compiles and runs.
    fn has_transforms(&self) -> bool {
        match self {
            GpuCompiler::Gpu(_) => Driver::get().is_ok() && fft::find().is_ok(),
            GpuCompiler::Emulated(_) => false,
        }
    }

    /// Warns once that the Fourier transforms of a program are expanded because cuFFT is missing.
    fn tell_of_transforms(&self, module: &Module) {
        static TOLD: Once = Once::new();
        let has_one = || module.iter().any(|(_, graph)| graph.iter().any(|(_, i)| i.opcode() == Opcode::Fft));
        if let GpuCompiler::Gpu(_) = self
            && let Err(why) = Driver::get().and_then(|_| fft::find())
            && has_one()
        {
            TOLD.call_once(|| tracing::warn!(%why, "cuFFT is not used: transforms are lowered to other operations"));
        }
    }

    /// Returns the profile for programs that run in this process: that of the first GPU, or the default one without a
    /// GPU.
    fn gpu_here(&self) -> GpuProfile {
        match self {
            GpuCompiler::Gpu(_) => device_profile::of_first().unwrap_or_else(GpuProfile::usual),
            GpuCompiler::Emulated(_) => GpuProfile::usual(),
        }
    }
}

/// Builds the standard pass pipeline; without optimisation, only the required lowering. Without cuFFT, Fourier
/// transforms are expanded into other operations.
fn passes_for(gpu: &GpuProfile, options: &CompileOptions, has_transforms: bool) -> HloPasses {
    let mut profile = profile(gpu);
    profile.tf32 = options.allow_tf32;
    profile.fusion.attention.excess_precision = options.excess_precision;
    if has_transforms {
        profile.lacks.remove(&Opcode::Fft);
    }
    HloPasses::for_level(options.opt_level, profile)
}

/// Runs the passes for a machine that may lack cuFFT.
fn optimize_for_files(module: VerifiedModule, gpu: &GpuProfile, options: &CompileOptions) -> Result<OptimizedModule> {
    Ok(optimize(module, &passes_for(gpu, options, false), options, None)?.0)
}

impl AheadOfTimeCompiler for GpuCompiler {
    fn compile_ahead_of_time(
        &self,
        modules: Vec<VerifiedModule>,
        options: &AotCompilationOptions,
    ) -> Result<Vec<AotFile>> {
        let [module] = <[VerifiedModule; 1]>::try_from(modules).map_err(|modules| {
            Error::invalid_argument(format!("an executable for a GPU holds one module, not {}", modules.len()))
        })?;
        let target = match (self, options.target.as_deref()) {
            (GpuCompiler::Gpu(_), architecture) => Target::nvptx(architecture.unwrap_or(DEFAULT_ARCHITECTURE))?,
            (GpuCompiler::Emulated(_), None) => Target::host_threads()?,
            (GpuCompiler::Emulated(_), Some(_)) => {
                return Err(Error::invalid_argument(format!(
                    "platform {EMULATED_NAME} compiles for this machine only; leave the target out"
                )));
            }
        };
        ahead_of_time::refuse_what_is_for_objects(options)?;
        // The files of a target do not depend on the GPU of this machine.
        let gpu = GpuProfile::of_architecture(target.cpu()).unwrap_or_else(GpuProfile::usual);
        let module = as_loaded(optimize_for_files(module, &gpu, &options.compile)?)?;
        // Programs with collectives are not loaded from files.
        check_independent(&module)?;
        let choices = self.with_choices(&options.compile);
        let (compiled, strategies) = compile_and_tell(&module, (&target, gpu), ModuleSize::Fixed, &choices)?;
        ahead_of_time::files(self.platform(), &module, (compiled, &strategies), options)
    }
}

impl LoadExecutable for GpuCompiler {
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        match self {
            GpuCompiler::Gpu(caches) => loading::load_for_gpu(bytes, options, caches),
            GpuCompiler::Emulated(way) => loading::load(EMULATED_NAME, bytes, options, |device| {
                emulation::check(&device.compiled_for)?;
                Ok(Box::new(EmulatedCode::load(&device.image, way.unwrap_or(0))?))
            }),
        }
    }

    /// Returns `None`: the cubin cache stores kernels one by one.
    fn cache_target(&self) -> Option<String> {
        None
    }

    fn holds_host_code(&self) -> bool {
        matches!(self, GpuCompiler::Emulated(_))
    }
}

fn compile(
    module: &OptimizedModule,
    (target, gpu): (&Target, GpuProfile),
    modules: ModuleSize,
    options: &CompileOptions,
) -> Result<Compiled> {
    Ok(compile_and_tell(module, (target, gpu), modules, options)?.0)
}

/// Compiles a program. Also returns the strategy of each of its kernels.
fn compile_and_tell(
    module: &OptimizedModule,
    (target, gpu): (&Target, GpuProfile),
    modules: ModuleSize,
    options: &CompileOptions,
) -> Result<(Compiled, Vec<String>)> {
    let target = &target.with_multiprocessors(gpu.multiprocessors);
    let mut lowering = GpuLowering::new(module, target, options);
    let mut recorder = RecordingLowering::new(&mut lowering);
    let program = place(module, &mut recorder, &gpu, options)?;
    let lowerings = recorder.lowerings;
    let with_texts = options.dump_to.is_some();
    let emission = EmitOptions { round_each_operation: !options.excess_precision, ..EmitOptions::default() };
    let GeneratedCode { image, kernels, texts } =
        codegen::generate(target, &lowering.kernels, (modules, options.thread_count()), emission, with_texts)?;
    let command_sequences = lowering.command_sequences(&kernels)?;
    let (compiled_for, thunk_hash) = (emulation::compiled_for(target), serialized::thunk_hash(&program));
    let device =
        DeviceProgram { compiled_for, gpu, image, cubins: Vec::new(), command_sequences, lowerings, thunk_hash };
    let strategies = kernels.into_iter().map(|kernel| kernel.strategy).collect();
    Ok((Compiled { program, device: Arc::new(device), texts }, strategies))
}

/// Serialises the module and parses it again, so that a program compiled into a file equals the program loaded from it.
fn as_loaded(module: OptimizedModule) -> Result<OptimizedModule> {
    let bytes = proto::serialize_module(&module)?;
    drop(module);
    Ok(OptimizedModule::new(VerifiedModule::new(proto::parse_module(&bytes)?)?))
}

#[cfg(test)]
mod choice_tests;
#[cfg(test)]
mod profile_tests;

#[cfg(test)]
mod tests;
