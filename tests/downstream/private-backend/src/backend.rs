//! Minimal backend: passes of the project, the host's memory, and its own executable.

use std::sync::Arc;

use xla::hlo::eval::Evaluator;
use xla::hlo::{Module, Result, VerifiedModule};
use xla::passes::{TargetProfile, stages};
use xla::service::executable::{Argument, CostAnalysis, ExecutionContext, MemoryAnalysis};
use xla::service::host::{HostExecutor, HostTransfer, PoolLimits, host_shape};
use xla::service::platform::no_such_device;
use xla::service::signature::Signature;
use xla::service::{
    CompileOptions, Compiler, DeviceMemory, Executable, HloPasses, OptimizedModule, Platform, StreamExecutor,
    TransferManager, optimize,
};

pub const NAME: &str = "private";

pub fn platform() -> Arc<dyn Platform> {
    Arc::new(Private { executor: Arc::new(HostExecutor::new(NAME, 0, PoolLimits::default())) })
}

#[derive(Debug)]
struct Private {
    executor: Arc<HostExecutor>,
}

impl Platform for Private {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> usize {
        1
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(no_such_device(NAME, ordinal, 1)) }
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(PrivateCompiler)
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(HostTransfer)
    }
}

#[derive(Debug)]
struct PrivateCompiler;

impl Compiler for PrivateCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        let profile = TargetProfile::generic();
        let passes = HloPasses { pipeline: stages::needed(&profile), profile };
        Ok(optimize(module, &passes, options, None)?.0)
    }

    fn run_backend(&self, module: OptimizedModule, _: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let signature = Signature::new(&module, host_shape)?;
        Ok(Arc::new(Graph { module, signature }))
    }
}

/// Stand-in for a vendor's graph: the module itself.
#[derive(Debug)]
struct Graph {
    module: OptimizedModule,
    signature: Signature,
}

impl Executable for Graph {
    fn module(&self) -> &Module {
        &self.module
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let parameters = context.read_arguments(&self.signature, &arguments)?;
        let result = Evaluator::new(&self.module).call_entry(parameters)?;
        context.write_results(&self.signature, result)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        MemoryAnalysis::default()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::default()
    }
}
