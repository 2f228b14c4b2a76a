//! An LLVM context whose errors are recorded: LLVM ends the process at those that nobody listens to. Its one warning is
//! that of a stack frame over the limit.
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

/// A context, and what LLVM reported in it.
pub(crate) struct ListeningContext {
    // In the order in which they must go.
    context: Context,
    reports: Box<Mutex<Reports>>,
}

/// The first of each kind.
#[derive(Default)]
pub(crate) struct Reports {
    /// An error: LLVM's words for it.
    pub fault: Option<String>,
    /// The function whose stack frame is larger than its attribute `warn-stack-size` allows.
    pub large_frame: Option<String>,
}

impl ListeningContext {
    /// A new context.
    pub fn new() -> ListeningContext {
        own_thread::install_handlers();
        let this = ListeningContext { context: Context::create(), reports: Box::default() };
        this.listen();
        this
    }

    /// Records what LLVM reports from now on. Linking modules leaves another handler.
    pub fn listen(&self) {
        let reports: *const Mutex<Reports> = &*self.reports;
        // SAFETY: the reports are in a box of their own, which is there until the context is gone.
        unsafe {
            LLVMContextSetDiagnosticHandler((&self.context).as_ctx_ref(), Some(diagnose), reports.cast_mut().cast());
        }
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Takes out what was reported so far.
    pub fn take_reports(&self) -> Reports {
        std::mem::take(&mut self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Records a report.
extern "C" fn diagnose(diagnostic: LLVMDiagnosticInfoRef, reports: *mut c_void) {
    // SAFETY: LLVM passes a diagnostic, and the reports that were given with this function, which live as long as the
    // context; the description is a C string until disposed.
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
