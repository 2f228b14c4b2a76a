//! GPU executable: the thunks of a program, and the launcher of their command sequences.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use xla_hlo::{Error, Module, Result};
use xla_service::executable::SerializeExecutable;
use xla_service::thunks::{ThunkExecutable, ThunkProgram, ThunkSequence};
use xla_service::{
    Argument, CostAnalysis, DeviceMemory, Executable, ExecutionContext, MemoryAnalysis, OptimizedModule, Signature,
};

use crate::program::launcher::{DeviceCode, GpuLauncher};
use crate::program::serialized::DeviceProgram;

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    platform: &'static str,
    device: Arc<DeviceProgram>,
    thunks: ThunkExecutable,
    launcher: Arc<GpuLauncher>,
    texts: Vec<(String, String)>,
}

/// Program compiled for a device.
pub(crate) struct Compiled {
    /// Thunks of the program.
    pub program: ThunkProgram,
    /// Device code and command sequences.
    pub device: Arc<DeviceProgram>,
    /// Code as text, as file name and content, if it was requested.
    pub texts: Vec<(String, String)>,
}

impl GpuExecutable {
    /// Creates the executable of a platform from code that is ready to run.
    pub fn new(
        platform: &'static str,
        module: OptimizedModule,
        compiled: Compiled,
        code: Box<dyn DeviceCode>,
    ) -> GpuExecutable {
        let Compiled { program, device, texts } = compiled;
        let launcher = Arc::new(GpuLauncher::new(device.clone(), code));
        let thunks = ThunkExecutable::new(module, program, launcher.clone());
        GpuExecutable { platform, device, thunks, launcher, texts }
    }
}

impl Executable for GpuExecutable {
    fn module(&self) -> &Module {
        self.thunks.module()
    }

    fn signature(&self) -> &Signature {
        self.thunks.signature()
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        // The collectives of a failed run must be complete or aborted, too.
        let results = match catch_unwind(AssertUnwindSafe(|| self.thunks.execute(context, arguments))) {
            Ok(results) => results,
            Err(panic) => {
                let _ = self.launcher.finish(context, Some(&Error::internal("the run panicked")));
                resume_unwind(panic)
            }
        };
        let finished = self.launcher.finish(context, results.as_ref().err());
        let results = results?;
        finished.map(|()| results)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        self.thunks.memory_analysis()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        self.thunks.cost_analysis()
    }

    fn thunks(&self) -> Option<&ThunkSequence> {
        self.thunks.thunks()
    }

    fn can_be_recorded(&self, context: &ExecutionContext<'_>) -> std::result::Result<(), String> {
        self.thunks.can_be_recorded(context)
    }

    fn serializer(&self) -> Option<&dyn SerializeExecutable> {
        Some(self)
    }

    fn dumps(&self) -> Vec<(String, String)> {
        let mut dumps = self.thunks.dumps();
        dumps.extend(self.texts.iter().cloned());
        dumps
    }
}

impl SerializeExecutable for GpuExecutable {
    fn serialize(&self) -> Result<Vec<u8>> {
        self.device.write(self.platform, self.thunks.optimized_module())
    }
}
