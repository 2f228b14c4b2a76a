//! Helper kernels: small programs of the lowering's own that come from no operation.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_hlo::{Module, VerifiedModule};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};

/// A program whose entry is one kernel, from its parameters to its result.
#[derive(Clone, Debug)]
pub(crate) struct HelperProgram {
    module: Arc<Module>,
    /// Its text: programs of the same text are the same.
    text: String,
}

impl HelperProgram {
    /// A kernel of a program; its name identifies the kernel to people.
    pub fn new(program: VerifiedModule) -> HelperProgram {
        let text = program.to_string();
        HelperProgram { module: Arc::new(program.into_inner()), text }
    }

    /// Writes the kernel's function into the emitter's module.
    pub fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        emit_kernel(emitter, &self.source()?, name)
    }

    /// Number of 64-bit arguments of its function: the addresses of parameters and of the result.
    pub fn parameters(&self) -> usize {
        self.module.entry().parameters().len() + 1
    }

    /// Label for people.
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
