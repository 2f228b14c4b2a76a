//! The platforms: the GPUs of this machine, and the host in the place of one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Result};
use xla_llvm::target::Target;
use xla_service::host::StreamTransfer;
use xla_service::platform::no_such_device;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::compiler::{DeviceKind, GpuCompiler};
use crate::cuda::driver::Driver;
use crate::cuda::executor::CudaExecutor;
use crate::host::HostGpu;

/// The name of the platform of NVIDIA's GPUs.
pub const NAME: &str = "gpu";
/// The name of the platform that runs the kernels of GPUs on the host.
pub const HOST_NAME: &str = "gpu-host";

/// NVIDIA's GPUs, through the CUDA driver.
pub fn platform() -> Arc<dyn Platform> {
    Arc::new(GpuPlatform::default())
}

#[derive(Debug, Default)]
struct GpuPlatform {
    /// Made when first asked for, by ordinal.
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
        // A device that cannot be opened leaves the table as it was.
        let mut executors = self.executors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executor) = executors.get(&ordinal) {
            return Ok(executor.clone());
        }
        let executor = Arc::new(CudaExecutor::new(NAME, ordinal, None)?);
        executors.insert(ordinal, executor.clone());
        Ok(executor)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GpuCompiler(DeviceKind::Gpu))
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(StreamTransfer)
    }
}

/// The host in the place of a GPU: slow, and everywhere. It runs the same kernels, generated for the host's processor.
pub fn host_platform() -> Arc<dyn Platform> {
    Arc::new(HostPlatform { executor: Arc::new(HostGpu::new(HOST_NAME)) })
}

#[derive(Debug)]
struct HostPlatform {
    executor: Arc<dyn StreamExecutor>,
}

impl Platform for HostPlatform {
    fn name(&self) -> &str {
        HOST_NAME
    }

    fn check(&self) -> Result<()> {
        Target::host_threads().map(|_| ()).map_err(|error| {
            Error::failed_precondition(format!("LLVM cannot generate code for this machine: {}", error.message()))
                .with_source(error)
        })
    }

    fn device_count(&self) -> usize {
        usize::from(self.check().is_ok())
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(no_such_device(HOST_NAME, ordinal, 1)) }
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GpuCompiler(DeviceKind::Host))
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(StreamTransfer)
    }
}
