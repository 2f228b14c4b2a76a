//! Executable of the interpreter: evaluates the module at each launch.

use xla_hlo::eval::Evaluator;
use xla_hlo::{Module, Result, VerifiedModule};

use crate::executable::{Argument, CostAnalysis, Executable, ExecutionContext, MemoryAnalysis};
use crate::executor::DeviceMemory;
use crate::host::host_shape;
use crate::signature::Signature;

#[derive(Debug)]
pub(super) struct InterpreterExecutable {
    module: VerifiedModule,
    signature: Signature,
    threads: usize,
}

impl InterpreterExecutable {
    pub(super) fn new(module: VerifiedModule, threads: usize) -> Result<InterpreterExecutable> {
        let signature = Signature::new(&module, host_shape)?;
        Ok(InterpreterExecutable { module, signature, threads })
    }
}

impl Executable for InterpreterExecutable {
    fn module(&self) -> &Module {
        &self.module
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let literals = context.read_arguments(&self.signature, &arguments)?;
        // Donated memory returns to the pool before the evaluation, so that results can reuse it.
        drop(arguments);
        let threads = context.logical_device.map_or(self.threads, |device| device.threads(self.threads));
        let mut evaluator = Evaluator::new(&self.module)
            .with_threads(threads)
            .with_random_state(context.random.clone())
            .with_custom_calls(context.custom_calls)
            .with_cancellation(context.cancel.flag().clone());
        if let Some(device) = context.logical_device {
            evaluator = device.connect(evaluator, context.cancel);
        }
        let result = evaluator.call_entry(literals)?;
        context.write_results(&self.signature, result)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        MemoryAnalysis {
            argument_bytes: self.signature.arguments().iter().map(|leaf| leaf.shape.byte_size()).sum(),
            output_bytes: self.signature.outputs().iter().map(|leaf| leaf.shape.byte_size()).sum(),
            ..MemoryAnalysis::default()
        }
    }

    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::default()
    }
}
