//! Work of LLVM on a thread that can be lost, so that no fatal error of LLVM ends the process.
//!
//! LLVM knows errors that it does not return: instructions that it cannot select, processors that contradict their
//! triple. It reports them to a handler that must not return, and calls `abort` if it does. Unwinding out of the
//! handler is not possible, since LLVM is built without exceptions, and a list of what LLVM cannot do would never be
//! complete. So it works on a thread of its own, which owns what it works on. The handler, which runs on that thread,
//! hands LLVM's message to the one that waits and then sleeps for ever: nothing is undone that LLVM was about to do,
//! and nothing is used again. A thread and its memory are lost for each such error.
#![expect(unsafe_code, reason = "LLVM's handler is a C function")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};

use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use xla_hlo::{Error, Result};

/// Bytes of the thread's stack: instruction selection is recursive.
const STACK_BYTES: usize = 16 << 20;

/// Outcome of the work on a thread.
enum Outcome {
    Done(Box<dyn Any + Send>),
    /// With a fatal error: the thread sleeps for ever.
    Lost(String),
}

thread_local! {
    /// Receiver of a fatal error on this thread.
    static WAITING: RefCell<Option<Sender<Outcome>>> = const { RefCell::new(None) };
}

/// Runs `work`, which calls LLVM, on a thread that is left behind if LLVM fails fatally; `fatal` makes the error of
/// LLVM's message then.
pub(crate) fn run<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
    fatal: impl FnOnce(&str) -> Error,
) -> Result<R> {
    static HANDLER: Once = Once::new();
    // SAFETY: the handler is a function of the type asked for, and does not return on threads that are started here.
    HANDLER.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(report)) });
    let (sender, receiver) = channel();
    let run = move || {
        WAITING.set(Some(sender.clone()));
        let result = work();
        WAITING.take();
        // The one that waits is there: it waits for this.
        let _ = sender.send(Outcome::Done(Box::new(result)));
    };
    let thread = std::thread::Builder::new().name("codegen".to_string()).stack_size(STACK_BYTES).spawn(run);
    let thread = thread.map_err(|reason| Error::internal(format!("no thread to generate code on: {reason}")))?;
    let panicked = || Error::internal("the code generator panicked");
    match receiver.recv() {
        Ok(Outcome::Done(result)) => {
            thread.join().map_err(|_| panicked())?;
            *result.downcast::<Result<R>>().map_err(|_| Error::internal("work with a result of another type"))?
        }
        // Behind the first line there is the graph of an instruction that cannot be selected.
        Ok(Outcome::Lost(reason)) => Err(fatal(reason.lines().next().unwrap_or_default().trim_end())),
        Err(_) => Err(panicked()),
    }
}

/// Handler that LLVM calls before it ends the process.
extern "C" fn report(reason: *const c_char) {
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
