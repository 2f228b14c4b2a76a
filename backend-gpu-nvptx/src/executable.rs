//! The executable: thunks, and what launches their routines.

use std::sync::Arc;

use xla_hlo::{Module, Result};
use xla_service::executable::SerializeExecutable;
use xla_service::thunks::{ThunkExecutable, ThunkSequence};
use xla_service::{
    Argument, CompileOptions, CostAnalysis, DeviceMemory, Executable, ExecutionContext, MemoryAnalysis,
    OptimizedModule, Signature,
};

use crate::compiler::{Compiled, GpuCompiler};
use crate::launch::GpuLauncher;
use crate::stored::DeviceProgram;

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    platform: &'static str,
    device: Arc<DeviceProgram>,
    thunks: ThunkExecutable,
    texts: Vec<(String, String)>,
}

impl GpuExecutable {
    pub fn new(
        module: OptimizedModule,
        compiled: Compiled,
        compiler: &GpuCompiler,
        options: &CompileOptions,
    ) -> Result<GpuExecutable> {
        let Compiled { program, device, texts } = compiled;
        let device = Arc::new(device);
        let launcher = match compiler {
            GpuCompiler::Host => GpuLauncher::for_host(device.clone())?,
            GpuCompiler::Gpu(processes) => GpuLauncher::for_gpu(device.clone(), processes.of(options)),
        };
        let thunks = ThunkExecutable::new(module, program, Arc::new(launcher));
        Ok(GpuExecutable { platform: compiler.platform(), device, thunks, texts })
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
