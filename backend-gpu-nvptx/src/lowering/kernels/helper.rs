//! Helper kernels: small programs that the lowering itself creates.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_hlo::{Module, VerifiedModule};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};

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

    /// Emits the kernel's function into the emitter's module.
    pub fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        emit_kernel(emitter, &self.source()?, name)
    }

    /// Returns the number of 64-bit arguments of its function: the addresses of parameters and of the result.
    pub fn parameters(&self) -> usize {
        self.module.entry().parameters().len() + 1
    }

    /// Returns the label for messages and profiles.
    pub fn label(&self) -> &str {
        self.module.name()
    }

    fn source(&self) -> Result<KernelSource<'_>> {
        let source = KernelSource::of_computation(&self.module, self.module.entry_id(), |_| false);
        source.ok_or_else(|| Error::internal(format!("no kernel can be made of\n{}", self.text)))
    }
}

impl PartialEq for HelperProgram {
    fn eq(&self, other: &HelperProgram) -> bool {
        self.text == other.text
    }
}
