//! Platform: creates the compiler, executor and transfer manager.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_service::host::HostExecutor;
use xla_service::platform::no_such_device;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::compiler::CpuCompiler;
use crate::options::{CpuOptions, NAME};
use crate::{executor, transfer};

/// Returns the CPU platform. It has one device, the host with all its cores; a client can request further virtual
/// devices that share these cores.
pub fn platform() -> Arc<dyn Platform> {
    platform_with(CpuOptions::default())
}

/// Returns the CPU platform with custom options. It has the same name as the default one, so clients of the two must
/// not share a compilation cache.
pub fn platform_with(options: CpuOptions) -> Arc<dyn Platform> {
    Arc::new(CpuPlatform { executor: executor::host(options.dirty), compiler: Arc::new(CpuCompiler::new(options)) })
}

#[derive(Debug)]
struct CpuPlatform {
    executor: Arc<HostExecutor>,
    compiler: Arc<CpuCompiler>,
}

impl Platform for CpuPlatform {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self) -> Result<()> {
        self.compiler.target().map(|_| ()).map_err(|error| {
            Error::failed_precondition(format!("LLVM cannot generate code for this machine: {}", error.message()))
                .with_source(error)
        })
    }

    fn device_count(&self) -> usize {
        usize::from(self.check().is_ok())
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(no_such_device(NAME, ordinal, 1)) }
    }

    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        self.check()?;
        self.executor.devices(count)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        self.compiler.clone()
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        transfer::manager()
    }
}
