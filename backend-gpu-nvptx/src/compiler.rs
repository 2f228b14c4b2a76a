//! The compiler: the standard stages for GPUs, then a routine for each thunk, and the code of its kernels.

use std::sync::Arc;

use xla_hlo::{Error, Result, VerifiedModule, proto};
use xla_llvm::target::Target;
use xla_passes::stages;
use xla_service::compiler::{AheadOfTimeCompiler, AotFile, LoadExecutable};
use xla_service::{
    AotCompilationOptions, CompileOptions, Compiler, Executable, HloPasses, OptLevel, OptimizedModule, optimize,
};

use crate::ahead;
use crate::capabilities::profile;
use crate::codegen::{self, Code};
use crate::cuda::driver::Driver;
use crate::cuda::launch::GpuCode;
use crate::executable::{Compiled, GpuExecutable};
use crate::host::{self, HOST_NAME, HostCode};
use crate::launch::DeviceCode;
use crate::loading::{self, place};
use crate::lowering::GpuLowering;
use crate::platform::NAME;
use crate::recorder::Recorder;
use crate::stored::{self, DeviceProgram};

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

impl GpuCompiler {
    pub fn for_gpus() -> GpuCompiler {
        GpuCompiler(DeviceKind::Gpu)
    }
}

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
        let device = compiled.device.clone();
        let code: Box<dyn DeviceCode> = match self.0 {
            DeviceKind::Host => Box::new(HostCode::load(&device.image)?),
            DeviceKind::Gpu => Box::new(GpuCode::new(device)),
        };
        Ok(Arc::new(GpuExecutable::new(self.0.platform(), module, compiled, code)))
    }

    fn ahead_of_time(&self) -> Option<&dyn AheadOfTimeCompiler> {
        Some(self)
    }

    fn loader(&self) -> Option<&dyn LoadExecutable> {
        Some(self)
    }
}

impl DeviceKind {
    /// The platform of such devices.
    pub fn platform(self) -> &'static str {
        match self {
            DeviceKind::Gpu => NAME,
            DeviceKind::Host => HOST_NAME,
        }
    }
}

impl AheadOfTimeCompiler for GpuCompiler {
    fn compile_ahead_of_time(&self, module: OptimizedModule, options: &AotCompilationOptions) -> Result<Vec<AotFile>> {
        let target = match (self.0, options.target.as_deref()) {
            (DeviceKind::Gpu, architecture) => Target::nvptx(architecture.unwrap_or(DEFAULT_ARCHITECTURE))?,
            (DeviceKind::Host, None) => Target::host_threads()?,
            (DeviceKind::Host, Some(_)) => {
                return Err(Error::invalid_argument(format!(
                    "platform {HOST_NAME} compiles for this machine only; leave the target out"
                )));
            }
        };
        let module = as_loaded(module)?;
        let Compiled { device, .. } = compile(&module, &target, &options.compile)?;
        ahead::files(self.0.platform(), &module, Arc::unwrap_or_clone(device), options)
    }
}

impl LoadExecutable for GpuCompiler {
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        match self.0 {
            DeviceKind::Gpu => loading::load_for_gpu(bytes, options),
            DeviceKind::Host => loading::load(HOST_NAME, bytes, options, |device| {
                host::check(&device.made_for)?;
                Ok(Box::new(HostCode::load(&device.image)?))
            }),
        }
    }
}

/// That of the first GPU; that of current ones where there is none.
fn architecture() -> Result<String> {
    let Ok(driver) = Driver::get() else { return Ok(DEFAULT_ARCHITECTURE.to_string()) };
    let (major, minor) = driver.device(0)?.capability;
    Ok(format!("sm_{major}{minor}"))
}

fn compile(module: &OptimizedModule, target: &Target, options: &CompileOptions) -> Result<Compiled> {
    let mut lowering =
        GpuLowering::new(module, stored::capability(target.cpu()).map(|(major, minor, _)| (major, minor)));
    let mut recorder = Recorder::new(&mut lowering);
    let program = place(module, &mut recorder, options)?;
    let answers = recorder.answers;
    let with_texts = options.dump_to.is_some();
    let Code { image, kernels, texts } =
        codegen::generate(target, lowering.kernels.codes(), options.thread_count(), with_texts)?;
    let routines = lowering.routines(&kernels)?;
    let (made_for, plan) = (host::made_for(target), stored::plan_of(&program));
    let device = DeviceProgram { made_for, image, cubins: Vec::new(), routines, answers, plan };
    Ok(Compiled { program, device: Arc::new(device), texts })
}

/// The module as it is when it was written and read: what is compiled for a file must be what is loaded from it.
fn as_loaded(module: OptimizedModule) -> Result<OptimizedModule> {
    let bytes = proto::serialize_module(&module)?;
    drop(module);
    Ok(OptimizedModule::new(VerifiedModule::new(proto::parse_module(&bytes)?)?))
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
