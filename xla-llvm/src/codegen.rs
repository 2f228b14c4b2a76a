//! Machine code from a module, on a thread that can be lost (`own_thread`).
//!
//! Before that the verifier reads the module: what it refuses would be undefined behaviour in the code generator.
#![expect(unsafe_code, reason = "a context and its module move to another thread together")]

use inkwell::context::Context;
use inkwell::module::Module;

use crate::listening_context::ListeningContext;
use crate::own_thread::{self, CODE_STACK};
use crate::target::{MachineOptions, Target};
use xla_hlo::{Error, Result};

/// Form of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// An object file.
    Object,
    /// Assembly text; for GPUs, PTX.
    Assembly,
}

/// A module with the context that it lives in, and that no other module lives in: what one thread generates code for.
pub struct Unit {
    // In the order in which they must go.
    module: Module<'static>,
    context: Box<ListeningContext>,
}

// SAFETY: LLVM's objects belong to no thread, they must only not be used by two at once; context and module, which
// point at nothing else of LLVM, are handed over together by the one thread that has them.
unsafe impl Send for Unit {}

/// Generates code for the module that `emit` writes into a context of its own, and passes on the other result of
/// `emit`.
///
/// Errors: those of [`Unit::generate`].
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
    /// The module that `emit` writes into a context of its own, and the other result of `emit`, which runs on a thread
    /// with a stack of so many bytes.
    ///
    /// `Error::ResourceExhausted` where memory runs out.
    pub fn emit<R: Send>(
        stack_bytes: usize,
        emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)> + Send,
    ) -> Result<(Unit, R)> {
        let fatal = |reason: &str| Error::internal(format!("LLVM fails where kernels are written: {reason}"));
        own_thread::run(stack_bytes, || Unit::emit_here(emit), fatal)
    }

    fn emit_here<R>(emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)>) -> Result<(Unit, R)> {
        let context = Box::new(ListeningContext::new());
        let (module, extra) = emit(context.context())?;
        context.listen();
        // SAFETY: the lifetime is that of the context, which lives in a box that goes where the module goes and is
        // dropped after it.
        let module = unsafe { std::mem::transmute::<Module<'_>, Module<'static>>(module) };
        Ok((Unit { module, context }, extra))
    }

    /// Generates code.
    ///
    /// `Error::Internal` where the module is malformed; `Error::Unimplemented` where LLVM fails on it for this target,
    /// even fatally; `Error::ResourceExhausted` where a function's stack frame is over the
    /// [limit](crate::emitter::EmitOptions::stack_limit).
    pub fn generate(self, target: &Target, options: &MachineOptions, kind: CodeKind) -> Result<Vec<u8>> {
        let triple = target.triple();
        own_thread::run(CODE_STACK, || self.generate_here(target, options, kind), |reason| failed(triple, reason))
    }

    fn generate_here(self, target: &Target, options: &MachineOptions, kind: CodeKind) -> Result<Vec<u8>> {
        let refused = |reason| Error::internal(format!("LLVM finds the emitted code wrong: {reason}"));
        self.module.verify().map_err(|reason| refused(reason.to_string()))?;
        let machine = target.machine(options)?;
        let code = match kind {
            CodeKind::Object => machine.object(&self.module),
            CodeKind::Assembly => machine.assembly(&self.module).map(String::into_bytes),
        };
        let reports = self.context.take_reports();
        match (reports.fault, reports.large_frame) {
            (Some(reason), _) => Err(failed(target.triple(), &reason)),
            // Before it stands the line of source, which there is none of.
            (None, Some(function)) => Err(Error::resource_exhausted(function.trim_start_matches("<unknown>:0:0: "))),
            (None, None) => code,
        }
    }
}

/// LLVM knows triples whose code generators end at simple things.
fn failed(triple: &str, reason: &str) -> Error {
    Error::unimplemented(format!("LLVM cannot generate code for {triple}: {}", reason.trim_end()))
}
