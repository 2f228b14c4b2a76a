//! Platform of the interpreter.

use std::sync::Arc;

use xla_hlo::Result;

use super::compiler::InterpreterCompiler;
use super::{executor, transfer};
use crate::compiler::Compiler;
use crate::executor::StreamExecutor;
use crate::host::HostExecutor;
use crate::platform::{Platform, no_such_device};
use crate::transfer::TransferManager;

/// Name of the platform.
pub const NAME: &str = "interpreter";

/// Returns the interpreter platform. It has one device, the host; a client can request further virtual devices of the
/// host.
pub fn platform() -> Arc<dyn Platform> {
    Arc::new(InterpreterPlatform { executor: executor::host(NAME) })
}

#[derive(Debug)]
struct InterpreterPlatform {
    executor: Arc<HostExecutor>,
}

impl Platform for InterpreterPlatform {
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

    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        self.executor.devices(count)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(InterpreterCompiler)
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        transfer::manager()
    }
}
