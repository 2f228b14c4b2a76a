//! The platforms: the GPUs of this machine, and the host in the place of one.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_llvm::target::Target;
use xla_service::host::{HostExecutor, HostTransfer, PoolLimits};
use xla_service::platform::no_such_device;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::compiler::{DeviceKind, GpuCompiler};

/// The name of the platform of NVIDIA's GPUs.
pub const NAME: &str = "gpu";
/// The name of the platform that runs the kernels of GPUs on the host.
pub const HOST_NAME: &str = "gpu-host";

/// NVIDIA's GPUs, through the CUDA driver.
pub fn platform() -> Arc<dyn Platform> {
    Arc::new(GpuPlatform)
}

#[derive(Debug)]
struct GpuPlatform;

impl Platform for GpuPlatform {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self) -> Result<()> {
        Err(Error::failed_precondition(
            "this build cannot reach GPUs yet; platform gpu-host runs the same kernels on the host",
        ))
    }

    fn device_count(&self) -> usize {
        0
    }

    fn executor(&self, _: usize) -> Result<Arc<dyn StreamExecutor>> {
        self.check()?;
        Err(no_such_device(NAME, 0, 0))
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GpuCompiler(DeviceKind::Gpu))
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(HostTransfer)
    }
}

/// The host in the place of a GPU: slow, and everywhere. It runs the same kernels, generated for the host's processor.
pub fn host_platform() -> Arc<dyn Platform> {
    Arc::new(HostPlatform { executor: Arc::new(HostExecutor::new(HOST_NAME, 0, PoolLimits::default())) })
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
        Arc::new(HostTransfer)
    }
}
