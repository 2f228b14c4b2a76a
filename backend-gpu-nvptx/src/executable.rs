//! The executable: thunks, and what launches their routines.

use std::sync::Arc;

use xla_hlo::{Module, Result};
use xla_service::thunks::{ThunkExecutable, ThunkSequence};
use xla_service::{
    Argument, CostAnalysis, DeviceMemory, Executable, ExecutionContext, MemoryAnalysis, OptimizedModule, Signature,
};

use crate::compiler::Compiled;
use crate::compiler::DeviceKind;
use crate::launch::GpuLauncher;

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    thunks: ThunkExecutable,
    texts: Vec<(String, String)>,
}

impl GpuExecutable {
    pub fn new(module: OptimizedModule, compiled: Compiled, device: DeviceKind) -> Result<GpuExecutable> {
        let Compiled { program, routines, code } = compiled;
        let launcher = match device {
            DeviceKind::Host => GpuLauncher::for_host(routines, &code.image)?,
            DeviceKind::Gpu => GpuLauncher::for_gpu(routines, code.image),
        };
        Ok(GpuExecutable { thunks: ThunkExecutable::new(module, program, Arc::new(launcher)), texts: code.texts })
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
        self.thunks.execute(context, arguments)
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

    fn dumps(&self) -> Vec<(String, String)> {
        let mut dumps = self.thunks.dumps();
        dumps.extend(self.texts.iter().cloned());
        dumps
    }
}
