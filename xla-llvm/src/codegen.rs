//! Machine code from a module, on a thread that can be lost, so that no fatal error of LLVM ends the process.
//!
//! LLVM knows errors that it does not return: instructions that it cannot select it reports to a handler that must not
//! return, and calls `abort` if it does. Unwinding out of the handler is not possible, since LLVM is built without
//! exceptions, and a list of what LLVM cannot select would never be complete. So code is generated on a thread of its
//! own, which owns the module and its context. The handler, which runs on that thread, hands LLVM's message to the one
//! that waits and then sleeps for ever: nothing is undone that LLVM was about to do, and nothing is used again. A
//! thread and the module's memory are lost for each such error, which is a fault of the emitting code that should be
//! found and mended.
//!
//! Before that the verifier reads the module: what it refuses would be undefined behaviour in the code generator.
#![expect(
    unsafe_code,
    reason = "a context and its module move to another thread together; LLVM's handlers are C functions"
)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, Once, PoisonError};

use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::Module;

use crate::target::{MachineOptions, Target};
use xla_hlo::{Error, Result};

/// Bytes of the generating thread's stack: instruction selection is recursive.
const STACK_BYTES: usize = 16 << 20;

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
    _context: Box<Context>,
    faults: Box<Faults>,
}

type Faults = Mutex<Option<String>>;

// SAFETY: LLVM's objects belong to no thread, they must only not be used by two at once; context and module, which
// point at nothing else of LLVM, are handed over together by the one thread that has them.
unsafe impl Send for Unit {}

/// Outcome of the work on a thread.
enum Outcome {
    Done(Result<Vec<u8>>),
    /// With a fatal error: the thread sleeps for ever.
    Lost(String),
}

thread_local! {
    /// Receiver of a fatal error on this thread.
    static WAITING: RefCell<Option<Sender<Outcome>>> = const { RefCell::new(None) };
}

/// Generates code for the module that `emit` writes into a context of its own, and passes on the other result of
/// `emit`.
///
/// `Error::Internal` where the module is malformed or LLVM fails on it, even fatally.
pub fn generate<R>(
    target: &Target,
    options: &MachineOptions,
    kind: CodeKind,
    emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)>,
) -> Result<(Vec<u8>, R)> {
    let (unit, extra) = Unit::emit(emit)?;
    Ok((unit.generate(target, options, kind)?, extra))
}

/// Runs `work`, which calls LLVM, on a thread that is left behind if LLVM fails fatally.
fn on_own_thread(work: impl FnOnce() -> Result<Vec<u8>> + Send + 'static) -> Result<Vec<u8>> {
    static HANDLER: Once = Once::new();
    // SAFETY: the handler is a function of the type asked for, and does not return on threads that generate code.
    HANDLER.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(fatal)) });
    let (sender, receiver) = channel();
    let run = move || {
        WAITING.set(Some(sender.clone()));
        let result = work();
        WAITING.take();
        // The one that waits is there: it waits for this.
        let _ = sender.send(Outcome::Done(result));
    };
    let thread = std::thread::Builder::new().name("codegen".to_string()).stack_size(STACK_BYTES).spawn(run);
    let thread = thread.map_err(|reason| Error::internal(format!("no thread to generate code on: {reason}")))?;
    let panicked = || Error::internal("the code generator panicked");
    match receiver.recv() {
        Ok(Outcome::Done(result)) => thread.join().map_err(|_| panicked()).and(result),
        Ok(Outcome::Lost(reason)) => Err(failed(&reason)),
        Err(_) => Err(panicked()),
    }
}

impl Unit {
    /// The module that `emit` writes into a context of its own, and the other result of `emit`.
    pub fn emit<R>(emit: impl for<'c> FnOnce(&'c Context) -> Result<(Module<'c>, R)>) -> Result<(Unit, R)> {
        let context = Box::new(Context::create());
        let (module, extra) = emit(&context)?;
        // SAFETY: the lifetime is that of the context, which lives in a box that goes where the module goes and is
        // dropped after it.
        let module = unsafe { std::mem::transmute::<Module<'_>, Module<'static>>(module) };
        Ok((Unit { module, _context: context, faults: Box::default() }, extra))
    }

    /// Generates code.
    ///
    /// `Error::Internal` where the module is malformed or LLVM fails on it, even fatally.
    pub fn generate(self, target: &Target, options: &MachineOptions, kind: CodeKind) -> Result<Vec<u8>> {
        let (target, options) = (target.clone(), options.clone());
        on_own_thread(move || self.generate_here(&target, &options, kind))
    }

    fn generate_here(self, target: &Target, options: &MachineOptions, kind: CodeKind) -> Result<Vec<u8>> {
        let refused = |reason| Error::internal(format!("LLVM finds the emitted code wrong: {reason}"));
        self.module.verify().map_err(|reason| refused(reason.to_string()))?;
        let faults: *const Faults = &*self.faults;
        // SAFETY: the context is this unit's, which keeps the faults until the context is gone.
        unsafe {
            let context = self.module.get_context().raw();
            LLVMContextSetDiagnosticHandler(context, Some(diagnose), faults.cast_mut().cast());
        }
        let machine = target.machine(options)?;
        let code = match kind {
            CodeKind::Object => machine.object(&self.module),
            CodeKind::Assembly => machine.assembly(&self.module).map(String::into_bytes),
        };
        match self.faults.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(reason) => Err(failed(&reason)),
            None => code,
        }
    }
}

fn failed(reason: &str) -> Error {
    Error::internal(format!("LLVM cannot generate code for the emitted module: {}", reason.trim_end()))
}

/// Handler that LLVM calls before it ends the process.
extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a C string.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    let Some(waiting) = WAITING.take() else {
        // Not a thread of ours: LLVM ends the process as it does without a handler.
        return;
    };
    if waiting.send(Outcome::Lost(reason)).is_ok() {
        loop {
            std::thread::park();
        }
    }
}

/// Records LLVM's errors that are not fatal; it would end the process as well if nobody listened.
extern "C" fn diagnose(diagnostic: LLVMDiagnosticInfoRef, faults: *mut c_void) {
    // SAFETY: LLVM passes a diagnostic, and the faults that were given with this function, which live as long as the
    // context; the description is a C string until disposed.
    unsafe {
        if LLVMGetDiagInfoSeverity(diagnostic) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let text = LLVMGetDiagInfoDescription(diagnostic);
        let description = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let faults = &*faults.cast_const().cast::<Faults>();
        faults.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(description);
    }
}
