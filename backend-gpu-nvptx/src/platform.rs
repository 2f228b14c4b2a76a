//! Platform of the GPUs of this machine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::Result;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::compiler::GpuCompiler;
use crate::cuda::driver::Driver;
use crate::cuda::nvtx::Profiler;
use crate::executor::CudaExecutor;
use crate::names::NAME;
use crate::program::caches::AllCaches;
use crate::transfer;

/// Returns the platform of NVIDIA GPUs, with default options. It uses the CUDA driver.
pub fn platform() -> Arc<dyn Platform> {
    platform_with(GpuOptions::default())
}

/// Returns the platform of NVIDIA GPUs with these options.
pub fn platform_with(options: GpuOptions) -> Arc<dyn Platform> {
    Arc::new(GpuPlatform { options, ..GpuPlatform::default() })
}

/// Options of the GPU platform.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Injection library of a profiler that supports NVTX 3, which profilers name in `NVTX_INJECTION64_PATH`. Runs of
    /// programs and their thunks are reported to it as ranges. A process uses only the first library that it attaches.
    pub profiler: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct GpuPlatform {
    options: GpuOptions,
    caches: Arc<AllCaches>,
    /// Executors by device ordinal, created on first use.
    executors: Mutex<HashMap<usize, Arc<CudaExecutor>>>,
}

impl Platform for GpuPlatform {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self) -> Result<()> {
        Driver::get().map(|_| ())
    }

    fn device_count(&self) -> usize {
        Driver::get().map_or(0, |driver| driver.devices.len())
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        // A device that cannot be opened leaves the table unchanged.
        let mut executors = self.executors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executor) = executors.get(&ordinal) {
            return Ok(executor.clone());
        }
        let profiler = self.options.profiler.as_deref().and_then(Profiler::attach);
        let executor = Arc::new(CudaExecutor::new(NAME, ordinal, None, profiler)?);
        executors.insert(ordinal, executor.clone());
        Ok(executor)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GpuCompiler::for_gpus(self.caches.clone()))
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        transfer::manager()
    }
}
