//! Platforms that tell passes and code apart: `optimized:NAME` evaluates what the passes of NAME made of a program.

use std::sync::Arc;

use xla::{CompileOptions, Platform, PlatformRegistry, Result, VerifiedModule};
use xla_service::{
    Compiler, DeviceDescription, DeviceMemory, Executable, FaultInjection, MemoryStats, OptimizedModule, Stream,
    StreamExecutor, TransferManager, interpreter,
};

const PREFIX: &str = "optimized:";

/// The platform that runs the passes of another one and then evaluates: where it fails, the passes change what programs mean;
/// where only the other one fails, it is its code. Its name is `optimized:` and the other one's name.
pub fn optimized(platform: Arc<dyn Platform>) -> Arc<dyn Platform> {
    let name = format!("{PREFIX}{}", platform.name());
    Arc::new(Optimized { name, passes: platform, evaluator: interpreter::platform() })
}

/// The registry, with the platform of that name if it is such a one.
pub(super) fn with_pseudo_platforms(registry: &PlatformRegistry, name: &str) -> Result<PlatformRegistry> {
    let mut registry = registry.clone();
    if let Some(inner) = name.strip_prefix(PREFIX) {
        registry.register(optimized(registry.get(inner)?));
    }
    registry.get(name)?;
    Ok(registry)
}

#[derive(Debug)]
struct Optimized {
    name: String,
    passes: Arc<dyn Platform>,
    evaluator: Arc<dyn Platform>,
}

impl Platform for Optimized {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> usize {
        self.evaluator.device_count()
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        let inner = self.evaluator.executor(ordinal)?;
        let description = DeviceDescription { platform: self.name.clone(), ..inner.description().clone() };
        Ok(Arc::new(Renamed { inner, description }))
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(OptimizedCompiler { passes: self.passes.compiler(), evaluator: self.evaluator.compiler() })
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        self.evaluator.transfer_manager()
    }
}

/// A device of another platform, which says that it is of this one.
#[derive(Debug)]
struct Renamed {
    inner: Arc<dyn StreamExecutor>,
    description: DeviceDescription,
}

impl StreamExecutor for Renamed {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        self.inner.allocate(bytes)
    }

    fn memory_stats(&self) -> MemoryStats {
        self.inner.memory_stats()
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        self.inner.create_stream()
    }

    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        self.inner.fault_injection()
    }
}

#[derive(Debug)]
struct OptimizedCompiler {
    passes: Arc<dyn Compiler>,
    evaluator: Arc<dyn Compiler>,
}

impl Compiler for OptimizedCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        self.passes.run_hlo_passes(module, options)
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        self.evaluator.run_backend(module, options)
    }
}
