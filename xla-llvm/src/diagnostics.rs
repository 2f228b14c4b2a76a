//! LLVM context with recorded diagnostics: without a handler, LLVM terminates the process on errors. The only recorded
//! warning is a stack frame over the limit.
#![expect(unsafe_code, reason = "LLVM's diagnostic handler is a C function")]

use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;

use crate::own_thread;

/// Context, and the diagnostics that LLVM reported in it.
pub(crate) struct DiagnosticContext {
    // In drop order.
    context: Context,
    reports: Box<Mutex<Reports>>,
}

/// First report of each kind.
#[derive(Default)]
pub(crate) struct Reports {
    /// Error message of LLVM.
    pub fault: Option<String>,
    /// Name of the function whose stack frame is larger than its attribute `warn-stack-size` allows.
    pub large_frame: Option<String>,
}

impl DiagnosticContext {
    /// Creates a new context.
    pub fn new() -> DiagnosticContext {
        own_thread::install_handlers();
        let this = DiagnosticContext { context: Context::create(), reports: Box::default() };
        this.listen();
        this
    }

    /// Installs the handler that records diagnostics. Linking modules replaces the handler.
    pub fn listen(&self) {
        let reports: *const Mutex<Reports> = &*self.reports;
        // SAFETY: the reports are in a box of their own, which outlives the context.
        unsafe {
            LLVMContextSetDiagnosticHandler((&self.context).as_ctx_ref(), Some(diagnose), reports.cast_mut().cast());
        }
    }

    /// Returns the context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Takes the reports since the last call.
    pub fn take_reports(&self) -> Reports {
        std::mem::take(&mut self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Records a diagnostic.
extern "C" fn diagnose(diagnostic: LLVMDiagnosticInfoRef, reports: *mut c_void) {
    // SAFETY: LLVM passes a diagnostic, and the reports that were registered with this function, which live as long as
    // the context. The description is a C string until disposed.
    unsafe {
        let severity = LLVMGetDiagInfoSeverity(diagnostic);
        let text = LLVMGetDiagInfoDescription(diagnostic);
        let description = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let reports = &*reports.cast_const().cast::<Mutex<Reports>>();
        let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
        match severity {
            LLVMDiagnosticSeverity::LLVMDSError => _ = reports.fault.get_or_insert(description),
            LLVMDiagnosticSeverity::LLVMDSWarning if description.contains("stack frame size") => {
                reports.large_frame.get_or_insert(description);
            }
            _ => {}
        }
    }
}
