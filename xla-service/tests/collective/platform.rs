//! Platform in host memory whose thunks are all executed by the service.

use std::sync::Arc;

use xla_hlo::{Error, Result, VerifiedModule};
use xla_passes::TargetProfile;
use xla_passes::buffers::BufferOptions;
use xla_passes::schedule::insert_copies::insert_copies;
use xla_passes::schedule::schedule_module;
use xla_service::host::{HostExecutor, HostTransfer, PoolLimits};
use xla_service::thunks::{
    KernelRef, Launch, Launcher, LibraryRef, Lowered, Lowering, LoweringContext, ThunkExecutable, ThunkProgram,
};
use xla_service::{
    Client, ClientOptions, CompileOptions, Compiler, Executable, HloPasses, OptLevel, OptimizedModule, Platform,
    PlatformRegistry, StreamExecutor, TransferManager, interpreter, optimize,
};

const NAME: &str = "host-thunks";

/// Returns clients of 8 devices: of the interpreter, which executes collectives on literals, and of a platform that
/// executes them in place.
pub fn clients() -> [(Client, bool); 2] {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let limits = PoolLimits::default();
    registry.register(Arc::new(HostThunks(Arc::new(HostExecutor::new(NAME, 0, limits).with_dirty_memory(limits)))));
    [(interpreter::NAME, false), (NAME, true)].map(|(name, is_in_place)| {
        let options = ClientOptions { devices: Some(8), ..ClientOptions::default() };
        (Client::with_options(&registry, name, options).unwrap(), is_in_place)
    })
}

#[derive(Debug)]
struct HostThunks(Arc<HostExecutor>);

impl Platform for HostThunks {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> usize {
        1
    }

    fn executor(&self, _: usize) -> Result<Arc<dyn StreamExecutor>> {
        Ok(self.0.clone())
    }

    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        self.0.devices(count)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(ThunkCompiler)
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(HostTransfer)
    }
}

#[derive(Debug)]
struct ThunkCompiler;

impl Compiler for ThunkCompiler {
    /// Keeps layouts and asynchronous operations at level `O0`. The standard stages replace them.
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        if options.opt_level != OptLevel::O0 {
            let passes = HloPasses::for_level(OptLevel::O0, TargetProfile::generic());
            return Ok(optimize(module, &passes, options, None)?.0);
        }
        let mut module = module.into_inner();
        schedule_module(&mut module)?;
        insert_copies(&mut module)?;
        Ok(OptimizedModule::new(VerifiedModule::new(module)?))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let buffers = BufferOptions::default();
        let program = ThunkProgram::new(&module, &mut NothingLowered, &HostTransfer, &buffers, options)?;
        Ok(Arc::new(ThunkExecutable::new(module, program, Arc::new(NothingLowered))))
    }

    fn has_collectives(&self) -> bool {
        true
    }
}

/// Leaves all instructions to the service.
#[derive(Debug)]
struct NothingLowered;

impl Lowering for NothingLowered {
    fn lower(&mut self, _: &LoweringContext<'_>) -> Result<Lowered> {
        Ok(Lowered::NotMine)
    }

    fn has_collectives(&self) -> bool {
        true
    }
}

impl Launcher for NothingLowered {
    fn kernel(&self, kernel: &KernelRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("kernel {} was never lowered", kernel.name)))
    }

    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("{} was never lowered", call.name)))
    }
}
