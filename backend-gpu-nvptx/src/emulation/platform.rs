//! Platform of the emulated GPU.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_llvm::target::Target;
use xla_service::host::HostExecutor;
use xla_service::platform::no_such_device;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use super::executor::EmulatedGpu;
use crate::compiler::GpuCompiler;
use crate::names::EMULATED_NAME;
use crate::transfer;

/// Returns the platform of the emulated GPU: slow, and available everywhere. It runs the same kernels, generated for
/// the host's processor.
pub fn emulated_platform() -> Arc<dyn Platform> {
    emulated_by(None)
}

/// Returns the platform of the emulated GPU, on which matmuls use alternative `number` if they have it, as autotuning
/// on a GPU may choose it; 0 is the default.
pub fn emulated_platform_with_way(number: usize) -> Arc<dyn Platform> {
    emulated_by(Some(number))
}

fn emulated_by(way: Option<usize>) -> Arc<dyn Platform> {
    Arc::new(EmulatedPlatform { executor: Arc::new(EmulatedGpu::new(EMULATED_NAME)), way })
}

#[derive(Debug)]
struct EmulatedPlatform {
    executor: Arc<EmulatedGpu>,
    way: Option<usize>,
}

impl Platform for EmulatedPlatform {
    fn name(&self) -> &str {
        EMULATED_NAME
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
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(no_such_device(EMULATED_NAME, ordinal, 1)) }
    }

    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        self.check()?;
        let (count, most) = (count.unwrap_or(1), HostExecutor::MOST_DEVICES);
        if count > most {
            let message = format!("platform {EMULATED_NAME} has at most {most} devices, not {count}");
            return Err(Error::invalid_argument(message));
        }
        let others = (1..count).map(|ordinal| -> Arc<dyn StreamExecutor> { Arc::new(self.executor.device(ordinal)) });
        let first: Arc<dyn StreamExecutor> = self.executor.clone();
        Ok([first].into_iter().chain(others).take(count).collect())
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GpuCompiler::Emulated(self.way))
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        transfer::manager()
    }
}
