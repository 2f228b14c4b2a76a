//! Platform: provides the backend's parts.

use std::sync::Arc;

use xla::hlo::Result;
use xla::service::host::{HostExecutor, HostTransfer, PoolLimits};
use xla::service::platform::no_such_device;
use xla::service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::capabilities::NAME;
use crate::code::target;
use crate::compiler::CraneliftCompiler;

/// Returns the platform, whose one device is the host.
pub fn platform() -> Arc<dyn Platform> {
    Arc::new(CraneliftPlatform { executor: Arc::new(HostExecutor::new(NAME, 0, PoolLimits::default())) })
}

#[derive(Debug)]
struct CraneliftPlatform {
    executor: Arc<HostExecutor>,
}

impl Platform for CraneliftPlatform {
    fn name(&self) -> &str {
        NAME
    }

    /// Checks that Cranelift supports this processor.
    fn check(&self) -> Result<()> {
        target().map(drop)
    }

    fn device_count(&self) -> usize {
        usize::from(self.check().is_ok())
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(no_such_device(NAME, ordinal, 1)) }
    }

    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        self.executor.devices(count)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(CraneliftCompiler)
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(HostTransfer)
    }
}
