//! Executable that launches its thunks one by one.

use std::sync::Arc;

use xla_hlo::{Module, Result};

use super::sequence::can_be_recorded;
use super::{ExecutionBuffers, Launcher, StreamPool, Thunk, ThunkKind, ThunkProgram, ThunkSequence, execute};
use crate::compiler::OptimizedModule;
use crate::executable::{Argument, CostAnalysis, Executable, ExecutionContext, MemoryAnalysis, SerializeExecutable};
use crate::executor::DeviceMemory;
use crate::serialized;
use crate::signature::Signature;

/// Thunk sequence with all data for execution, and the backend's [`Launcher`].
#[derive(Debug)]
pub struct ThunkExecutable {
    module: OptimizedModule,
    program: ThunkProgram,
    launcher: Arc<dyn Launcher>,
    streams: StreamPool,
    /// Platform name in serialised programs; `None` if the program cannot be serialised.
    platform: Option<String>,
}

impl ThunkExecutable {
    /// Creates an executable of a module from its thunks and the launcher of its kernels.
    pub fn new(module: OptimizedModule, program: ThunkProgram, launcher: Arc<dyn Launcher>) -> ThunkExecutable {
        let streams = StreamPool::new(&program.sequence);
        ThunkExecutable { module, program, launcher, streams, platform: None }
    }

    /// Enables serialisation for a platform. The serialised program is the optimised module, which the platform's
    /// loader reads with [`serialized::read`] and lowers again.
    #[must_use]
    pub fn serialized_for(mut self, platform: impl Into<String>) -> ThunkExecutable {
        self.platform = Some(platform.into());
        self
    }

    /// Returns the optimised module, for backends with their own serialised format.
    pub fn optimized_module(&self) -> &OptimizedModule {
        &self.module
    }

    /// Returns the thunks.
    pub fn sequence(&self) -> &ThunkSequence {
        &self.program.sequence
    }
}

impl Executable for ThunkExecutable {
    fn module(&self) -> &Module {
        &self.module
    }

    fn signature(&self) -> &Signature {
        &self.program.signature
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let ThunkProgram { plan, sequence, .. } = &self.program;
        let mut buffers = ExecutionBuffers::new(plan, context, arguments)?;
        execute(&self.module, sequence, &*self.launcher, context, &mut buffers, &self.streams)?;
        buffers.into_results(plan, context)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        self.program.plan.memory_analysis()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::of(&self.module)
    }

    fn thunks(&self) -> Option<&ThunkSequence> {
        Some(&self.program.sequence)
    }

    fn serializer(&self) -> Option<&dyn SerializeExecutable> {
        self.platform.is_some().then_some(self)
    }

    fn can_be_recorded(&self, context: &ExecutionContext<'_>) -> std::result::Result<(), String> {
        if self.launcher.sequences().is_none() {
            return Err("the platform sends each thunk separately".to_string());
        }
        let loops = self.launcher.device_loops(context);
        let conditionals = loops.is_some_and(|loops| loops.conditionals().is_some());
        let is_recorded = |thunk: &&Thunk| match &thunk.kind {
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => true,
            ThunkKind::While { condition, body, .. } => {
                loops.is_some() && [condition, body].iter().all(|part| can_be_recorded(part, conditionals))
            }
            ThunkKind::Conditional { branches, .. } => {
                conditionals && branches.iter().all(|branch| can_be_recorded(branch, conditionals))
            }
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => false,
        };
        match self.program.sequence.thunks.iter().find(|thunk| !is_recorded(thunk)) {
            Some(thunk) => Err(format!("{} needs the host", thunk.place())),
            None => Ok(()),
        }
    }

    fn dumps(&self) -> Vec<(String, String)> {
        self.program.dumps(&self.module)
    }
}

impl SerializeExecutable for ThunkExecutable {
    fn serialize(&self) -> Result<Vec<u8>> {
        serialized::write(self.platform.as_deref().unwrap_or_default(), &self.module, &[])
    }
}
