//! Generation of machine code from a module, on a thread that can be abandoned (see `own_thread`).
//!
//! The verifier checks the module first: the code generator has undefined behaviour for invalid modules.
#![expect(unsafe_code, reason = "a context and its module move to another thread together")]

use inkwell::context::Context;
use inkwell::module::Module;

use crate::diagnostics::DiagnosticContext;
use crate::own_thread::{self, CODE_STACK};
use crate::target::{MachineOptions, Target};
use xla_hlo::{Error, Result};

/// Form of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// Object file.
    Object,
    /// Assembly text; for GPUs, PTX.
    Assembly,
}

/// Module and its own context, which contains no other module: the unit of work of one code generation thread.
pub struct Unit {
    // In drop order.
    module: Module<'static>,
    context: Box<DiagnosticContext>,
}

// SAFETY: LLVM's objects have no thread affinity, they must only not be used by two threads at once. Context and module
// point to no other objects of LLVM, and their single owner moves them to another thread together.
unsafe impl Send for Unit {}

/// Generates code for the module that `emit` writes into a context of its own, and returns it with the other result of
/// `emit`.
///
/// Fails as [`Unit::emit`] and [`Unit::generate`] do.
pub fn generate<R: Send>(
    target: &Target,
    options: &MachineOptions,
    kind: CodeKind,
    emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)> + Send,
) -> Result<(Vec<u8>, R)> {
    let (unit, extra) = Unit::emit(CODE_STACK, emit)?;
    Ok((unit.generate(target, options, kind)?, extra))
}

impl Unit {
    /// Creates a module by `emit` in a context of its own, and returns it with the other result of `emit`, which runs
    /// on a thread with a stack of `stack_bytes` bytes.
    ///
    /// Fails with `ResourceExhausted` if memory runs out, and with the errors of `emit`.
    pub fn emit<R: Send>(
        stack_bytes: usize,
        emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)> + Send,
    ) -> Result<(Unit, R)> {
        let fatal = |reason: &str| Error::internal(format!("LLVM failed while kernels were emitted: {reason}"));
        own_thread::run(stack_bytes, || Unit::emit_here(emit), fatal)
    }

    fn emit_here<R>(emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)>) -> Result<(Unit, R)> {
        let context = Box::new(DiagnosticContext::new());
        let (module, extra) = emit(context.context())?;
        context.listen();
        // SAFETY: the lifetime is that of the context. The context is in a box that moves with the module and is
        // dropped after it.
        let module = unsafe { std::mem::transmute::<Module<'_>, Module<'static>>(module) };
        Ok((Unit { module, context }, extra))
    }

    /// Generates code.
    ///
    /// Fails with `Internal` if the module is malformed; `Unimplemented` if LLVM fails on it for this target, even
    /// fatally; `ResourceExhausted` if a function's stack frame exceeds the
    /// [limit](crate::emitter::EmitOptions::stack_limit).
    pub fn generate(self, target: &Target, options: &MachineOptions, kind: CodeKind) -> Result<Vec<u8>> {
        let triple = target.triple();
        own_thread::run(CODE_STACK, || self.generate_here(target, options, kind), |reason| failed(triple, reason))
    }

    fn generate_here(self, target: &Target, options: &MachineOptions, kind: CodeKind) -> Result<Vec<u8>> {
        let refused = |reason| Error::internal(format!("LLVM rejects the emitted module: {reason}"));
        self.module.verify().map_err(|reason| refused(reason.to_string()))?;
        let machine = target.machine(options)?;
        let code = match kind {
            CodeKind::Object => machine.object(&self.module),
            CodeKind::Assembly => machine.assembly(&self.module).map(String::into_bytes),
        };
        let reports = self.context.take_reports();
        match (reports.fault, reports.large_frame) {
            (Some(reason), _) => Err(failed(target.triple(), &reason)),
            // Strip the prefix for the source line, which does not exist here.
            (None, Some(function)) => Err(Error::resource_exhausted(function.trim_start_matches("<unknown>:0:0: "))),
            (None, None) => code,
        }
    }
}

/// Creates the error for a failure of LLVM: some of its code generators fail on simple code.
fn failed(triple: &str, reason: &str) -> Error {
    Error::unimplemented(format!("LLVM cannot generate code for {triple}: {}", reason.trim_end()))
}
