//! Compiler of the interpreter: passes the module through unchanged.

use std::sync::Arc;

use xla_hlo::{Result, VerifiedModule};

use super::executable::InterpreterExecutable;
use crate::compiler::{Compiler, OptimizedModule};
use crate::device_only;
use crate::executable::Executable;
use crate::options::CompileOptions;

#[derive(Debug)]
pub(super) struct InterpreterCompiler;

impl Compiler for InterpreterCompiler {
    /// Returns the module unchanged, whatever the options: the evaluator accepts any module.
    fn run_hlo_passes(&self, module: VerifiedModule, _: &CompileOptions) -> Result<OptimizedModule> {
        Ok(OptimizedModule::new(module))
    }

    fn has_collectives(&self) -> bool {
        true
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        device_only::refuse(&module)?;
        Ok(Arc::new(InterpreterExecutable::new(module.into_inner(), options.thread_count())?))
    }
}
