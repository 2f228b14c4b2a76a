//! Helper kernels: small programs that the lowering itself creates.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_hlo::{Module, VerifiedModule};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::{Identity, Kernel, KernelFunction, KernelSource, emit_kernel};

/// Program whose entry computation is one kernel, from its parameters to its result.
#[derive(Clone, Debug)]
pub(crate) struct HelperProgram {
    module: Arc<Module>,
    /// Text of the program; programs with equal texts are equal.
    text: String,
}

impl HelperProgram {
    /// Creates the kernel of a program, whose name becomes the kernel's label.
    pub fn new(program: VerifiedModule) -> HelperProgram {
        let text = program.to_string();
        HelperProgram { module: Arc::new(program.into_inner()), text }
    }

    fn source(&self) -> Result<KernelSource<'_>> {
        let source = KernelSource::of_computation(&self.module, self.module.entry_id(), |_| false);
        source.ok_or_else(|| Error::internal(format!("no kernel can be made of\n{}", self.text)))
    }
}

impl KernelFunction<'_> for HelperProgram {
    fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        emit_kernel(emitter, &self.source()?, name)
    }

    fn label(&self) -> &str {
        self.module.name()
    }

    fn identity(&self) -> Option<&dyn Identity> {
        Some(self)
    }
}

impl PartialEq for HelperProgram {
    fn eq(&self, other: &HelperProgram) -> bool {
        self.text == other.text
    }
}
