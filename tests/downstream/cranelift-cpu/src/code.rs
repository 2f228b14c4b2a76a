//! Compilation of a program's kernels: from Cranelift's IR to machine code in this process.

use cranelift_codegen::Context;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleError, default_libcall_names};
use xla::hlo::{Error, Result};

use crate::builder::KernelBuilder;
use crate::machine::{Kept, MachineCode, Work};

/// Returns this machine as Cranelift's target; `FailedPrecondition` if Cranelift does not support it.
pub(crate) fn target() -> Result<OwnedTargetIsa> {
    let unknown =
        |error: String| Error::failed_precondition(format!("Cranelift has no code for this machine: {error}"));
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [("opt_level", "speed"), ("use_colocated_libcalls", "false"), ("enable_verifier", verify)] {
        flags.set(name, value).map_err(|error| unknown(error.to_string()))?;
    }
    let isa = cranelift_native::builder().map_err(|error| unknown(error.to_string()))?;
    isa.finish(settings::Flags::new(flags)).map_err(|error| unknown(error.to_string()))
}

/// Builder of a program's kernels.
pub(crate) struct CodeBuilder {
    module: JITModule,
    context: Context,
    functions: FunctionBuilderContext,
    /// Kernels by their index.
    kernels: Vec<(FuncId, Work)>,
    kept: Kept,
}

impl CodeBuilder {
    pub fn new() -> Result<CodeBuilder> {
        let module = JITModule::new(JITBuilder::with_isa(target()?, default_libcall_names()));
        let context = module.make_context();
        let functions = FunctionBuilderContext::new();
        Ok(CodeBuilder { module, context, functions, kernels: Vec::new(), kept: Vec::new() })
    }

    /// Defines a kernel of `arrays` arrays and returns its index; `None` if `emit` returns `None`.
    pub fn define(
        &mut self,
        arrays: usize,
        emit: impl FnOnce(&mut KernelBuilder<'_>) -> Option<Work>,
    ) -> Result<Option<u32>> {
        self.module.clear_context(&mut self.context);
        let config = self.module.target_config();
        let function = FunctionBuilder::new(&mut self.context.func, &mut self.functions);
        let mut kernel = KernelBuilder::new(function, config, arrays, &mut self.kept);
        let Some(work) = emit(&mut kernel) else {
            // The context still contains the incomplete function.
            self.functions = FunctionBuilderContext::new();
            return Ok(None);
        };
        kernel.finish();
        let name = format!("kernel{}", self.kernels.len());
        let signature = &self.context.func.signature;
        let id = self.module.declare_function(&name, Linkage::Local, signature).map_err(internal)?;
        self.module.define_function(id, &mut self.context).map_err(internal)?;
        self.kernels.push((id, work));
        Ok(Some(self.kernels.len() as u32 - 1))
    }

    /// Links the kernels.
    pub fn finish(mut self) -> Result<MachineCode> {
        self.module.finalize_definitions().map_err(internal)?;
        Ok(MachineCode::new(self.module, self.kernels, self.kept))
    }
}

/// Converts an error of Cranelift, which is an internal error: the IR was invalid.
fn internal(error: ModuleError) -> Error {
    Error::internal(format!("Cranelift refused a kernel: {error:?}"))
}
