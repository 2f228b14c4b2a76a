//! Platforms that evaluate the output of another platform's compiler: `optimized:NAME` runs its passes, `compiled:NAME`
//! generates code as well.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla::{CompileOptions, Platform, PlatformRegistry, Result, VerifiedModule};
use xla_service::{
    Compiler, DeviceDescription, DeviceMemory, Executable, FaultInjection, MemoryStats, OptimizedModule, Stream,
    StreamExecutor, TransferManager, interpreter,
};

const OPTIMIZED: &str = "optimized:";
const COMPILED: &str = "compiled:";

/// Creates the platform `optimized:NAME`, which runs the passes of another platform and then evaluates. If it fails,
/// the passes change results; if only the other platform fails, its code generation is wrong.
pub fn optimized(platform: Arc<dyn Platform>) -> Arc<dyn Platform> {
    evaluated(OPTIMIZED, platform, false)
}

/// Creates the platform `compiled:NAME`, which compiles with another platform and then evaluates. It tests compilation
/// for processors whose code this machine cannot run.
pub fn compiled(platform: Arc<dyn Platform>) -> Arc<dyn Platform> {
    evaluated(COMPILED, platform, true)
}

fn evaluated(prefix: &str, compiled: Arc<dyn Platform>, generates_code: bool) -> Arc<dyn Platform> {
    let name = format!("{prefix}{}", compiled.name());
    let evaluator = interpreter::platform();
    Arc::new(Evaluated { name, compiled, generates_code, evaluator, devices: Mutex::default() })
}

/// Returns the registry, with the named platform added if it is such a one.
pub(super) fn with_pseudo_platforms(registry: &PlatformRegistry, name: &str) -> Result<PlatformRegistry> {
    let mut registry = registry.clone();
    if let Some(inner) = name.strip_prefix(OPTIMIZED) {
        registry.register(optimized(registry.get(inner)?));
    }
    if let Some(inner) = name.strip_prefix(COMPILED) {
        registry.register(compiled(registry.get(inner)?));
    }
    registry.get(name)?;
    Ok(registry)
}

#[derive(Debug)]
struct Evaluated {
    name: String,
    compiled: Arc<dyn Platform>,
    generates_code: bool,
    evaluator: Arc<dyn Platform>,
    devices: Mutex<BTreeMap<usize, Arc<Renamed>>>,
}

impl Platform for Evaluated {
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
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = devices.get(&ordinal) {
            return Ok(device.clone());
        }
        let inner = self.evaluator.executor(ordinal)?;
        let description = DeviceDescription { platform: self.name.clone(), ..inner.description().clone() };
        let device = Arc::new(Renamed { inner, description });
        devices.insert(ordinal, device.clone());
        Ok(device)
    }

    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        let renamed = |inner: Arc<dyn StreamExecutor>| -> Result<Arc<dyn StreamExecutor>> {
            if inner.description().ordinal == 0 {
                return self.executor(0);
            }
            let description = DeviceDescription { platform: self.name.clone(), ..inner.description().clone() };
            Ok(Arc::new(Renamed { inner, description }))
        };
        self.evaluator.executors(count)?.into_iter().map(renamed).collect()
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(EvaluatedCompiler {
            compiled: self.compiled.compiler(),
            generates_code: self.generates_code,
            evaluator: self.evaluator.compiler(),
        })
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        self.evaluator.transfer_manager()
    }
}

/// Device of another platform, with a description that names this platform.
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
struct EvaluatedCompiler {
    compiled: Arc<dyn Compiler>,
    generates_code: bool,
    evaluator: Arc<dyn Compiler>,
}

impl Compiler for EvaluatedCompiler {
    fn has_collectives(&self) -> bool {
        self.compiled.has_collectives() && self.evaluator.has_collectives()
    }

    fn reduces_in_rank_order(&self) -> bool {
        self.evaluator.reduces_in_rank_order()
    }

    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        self.compiled.run_hlo_passes(module, options)
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        if self.generates_code {
            self.compiled.run_backend(module.clone(), options)?;
        }
        self.evaluator.run_backend(module, options)
    }
}
