//! An LLVM context whose errors are recorded: LLVM ends the process at those that nobody listens to.
#![expect(unsafe_code, reason = "LLVM's diagnostic handler is a C function")]

use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;

/// A context, and the first error that LLVM reported in it.
pub(crate) struct ListeningContext {
    // In the order in which they must go.
    context: Context,
    fault: Box<Fault>,
}

type Fault = Mutex<Option<String>>;

impl ListeningContext {
    /// A new context.
    pub fn new() -> ListeningContext {
        let this = ListeningContext { context: Context::create(), fault: Box::default() };
        let fault: *const Fault = &*this.fault;
        // SAFETY: the fault is in a box of its own, which is there until the context is gone.
        unsafe {
            LLVMContextSetDiagnosticHandler((&this.context).as_ctx_ref(), Some(diagnose), fault.cast_mut().cast());
        }
        this
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Takes the error out, if there was one.
    pub fn take_fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Records an error.
extern "C" fn diagnose(diagnostic: LLVMDiagnosticInfoRef, fault: *mut c_void) {
    // SAFETY: LLVM passes a diagnostic, and the fault that was given with this function, which lives as long as the
    // context; the description is a C string until disposed.
    unsafe {
        if LLVMGetDiagInfoSeverity(diagnostic) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let text = LLVMGetDiagInfoDescription(diagnostic);
        let description = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let fault = &*fault.cast_const().cast::<Fault>();
        fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(description);
    }
}
