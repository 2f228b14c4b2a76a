//! The executable of a backend that launches thunk by thunk.

use std::sync::Arc;

use xla_hlo::{Module, Result};
use xla_passes::buffers::BufferAssignment;

use super::{BufferPlan, ExecutionBuffers, Launcher, ThunkSequence, execute};
use crate::compiler::OptimizedModule;
use crate::executable::{Argument, CostAnalysis, Executable, ExecutionContext, MemoryAnalysis};
use crate::executor::DeviceMemory;
use crate::signature::Signature;

/// A thunk sequence with everything it needs to run, and the backend's [`Launcher`].
#[derive(Debug)]
pub struct ThunkExecutable {
    module: OptimizedModule,
    signature: Signature,
    assignment: BufferAssignment,
    plan: BufferPlan,
    sequence: ThunkSequence,
    launcher: Arc<dyn Launcher>,
}

impl ThunkExecutable {
    /// Puts the parts together; all of them are of this very module.
    pub fn new(
        module: OptimizedModule,
        signature: Signature,
        assignment: BufferAssignment,
        sequence: ThunkSequence,
        launcher: Arc<dyn Launcher>,
    ) -> Result<ThunkExecutable> {
        let plan = BufferPlan::new(&module, &assignment, &signature)?;
        Ok(ThunkExecutable { module, signature, assignment, plan, sequence, launcher })
    }

    /// The thunks.
    pub fn sequence(&self) -> &ThunkSequence {
        &self.sequence
    }
}

impl Executable for ThunkExecutable {
    fn module(&self) -> &Module {
        &self.module
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let mut buffers = ExecutionBuffers::new(&self.plan, context, arguments)?;
        execute(&self.module, &self.sequence, &*self.launcher, context, &mut buffers)?;
        buffers.into_results(&self.plan, context)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        self.plan.memory_analysis()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::default()
    }

    fn dumps(&self) -> Vec<(String, String)> {
        vec![
            ("thunks.txt".to_string(), self.sequence.to_string()),
            ("buffers.txt".to_string(), self.assignment.to_string()),
        ]
    }
}
