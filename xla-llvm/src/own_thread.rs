//! Work of LLVM on a thread that can be lost, so that no fatal error of LLVM, memory that runs out included, ends the
//! process.
//!
//! LLVM knows errors that it does not return: instructions that it cannot select, processors that contradict their
//! triple. It reports them to a handler that must not return, and calls `abort` if it does. Unwinding out of the
//! handler is not possible, since LLVM is built without exceptions, and a list of what LLVM cannot do would never be
//! complete. So it works on a thread of its own, which owns what it works on. The handler, which runs on that thread,
//! hands LLVM's message to the one that waits and then sleeps for ever: nothing is undone that LLVM was about to do,
//! and nothing is used again. A thread and its memory are lost for each such error.
//!
//! Memory that runs out takes the same path: LLVM's containers report it to a handler of its own, `operator new` to the
//! handler of the C++ runtime, which would throw an exception through code that is built without exceptions.
#![expect(unsafe_code, reason = "LLVM's handler is a C function")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::mpsc::{SyncSender, sync_channel};

use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use xla_hlo::{Error, Result};

/// Bytes of the thread's stack: instruction selection is recursive.
const STACK_BYTES: usize = 16 << 20;

/// Outcome of the work on a thread.
enum Outcome {
    Done(Box<dyn Any + Send>),
    /// With a fatal error: the thread sleeps for ever.
    Lost(String),
    /// Memory ran out: the thread sleeps for ever.
    OutOfMemory,
}

thread_local! {
    /// Receiver of a fatal error on this thread; taken by `run`. It has no destructor: the C library would register one
    /// at the first access, and ends the process where memory has run out.
    static WAITING: RefCell<ManuallyDrop<Option<SyncSender<Outcome>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Makes `sender` the receiver of this thread's fatal error, and returns the one before.
fn wait_for(sender: Option<SyncSender<Outcome>>) -> Option<SyncSender<Outcome>> {
    WAITING.with(|waiting| std::mem::replace(&mut **waiting.borrow_mut(), sender))
}

/// Runs `work`, which calls LLVM, on a thread that is left behind if LLVM fails fatally; `fatal` makes the error of
/// LLVM's message then. [`Error::ResourceExhausted`] where LLVM runs out of memory, or no thread can be started.
pub(crate) fn run<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
    fatal: impl FnOnce(&str) -> Error,
) -> Result<R> {
    install_handlers();
    // With room for what is sent: nothing is allocated when memory has run out.
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        wait_for(Some(sender.clone()));
        let result = work();
        wait_for(None);
        // The one that waits is there: it waits for this.
        let _ = sender.send(Outcome::Done(Box::new(result)));
    };
    let thread = std::thread::Builder::new().name("codegen".to_string()).stack_size(STACK_BYTES).spawn(run);
    let thread =
        thread.map_err(|reason| Error::resource_exhausted(format!("no thread to generate code on: {reason}")))?;
    let panicked = || Error::internal("the code generator panicked");
    match receiver.recv() {
        Ok(Outcome::Done(result)) => {
            thread.join().map_err(|_| panicked())?;
            *result.downcast::<Result<R>>().map_err(|_| Error::internal("work with a result of another type"))?
        }
        // Behind the first line there is the graph of an instruction that cannot be selected.
        Ok(Outcome::Lost(reason)) => Err(fatal(reason.lines().next().unwrap_or_default().trim_end())),
        Ok(Outcome::OutOfMemory) => Err(Error::resource_exhausted("memory ran out while LLVM generated code")),
        Err(_) => Err(panicked()),
    }
}

/// Has LLVM call the handlers of this file, from the first call on.
pub(crate) fn install_handlers() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handler is a function of the type asked for, and does not return on threads that are started
        // here.
        unsafe { LLVMInstallFatalErrorHandler(Some(report)) };
        memory::install_handlers();
    });
}

/// Handler that LLVM calls before it ends the process.
extern "C" fn report(reason: *const c_char) {
    // SAFETY: LLVM passes a C string.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    lose(Outcome::Lost(reason));
}

/// Hands the outcome to the thread that waits and sleeps for ever. Returns on a thread that no other one waits for: the
/// process ends then as it does without a handler.
fn lose(outcome: Outcome) {
    let waiting = wait_for(None);
    if waiting.is_some_and(|waiting| waiting.send(outcome).is_ok()) {
        loop {
            std::thread::park();
        }
    }
}

/// The handlers of LLVM and of the C++ runtime for memory that runs out. Neither has a function of C; their names
/// follow the Itanium C++ ABI, which all systems but Windows have.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory {
    use std::sync::atomic::{AtomicPtr, Ordering};

    use xla_hlo::out_of_memory::{last_resort, release_reserve};

    use super::{Outcome, c_char, c_void, lose};

    /// `std::new_handler`.
    type NewHandler = extern "C" fn();

    /// The handler of `operator new` that was installed before; null for none.
    static PREVIOUS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

    // SAFETY: the signature is the one of the C++ standard, which any value satisfies.
    #[link(name = "stdc++")]
    unsafe extern "C" {
        /// `std::set_new_handler(void (*)())`
        #[link_name = "_ZSt15set_new_handlerPFvvE"]
        safe fn set_new_handler(handler: Option<NewHandler>) -> Option<NewHandler>;
    }

    // SAFETY: the signature is the one that `llvm/Support/ErrorHandling.h` declares.
    unsafe extern "C" {
        /// `llvm::install_bad_alloc_error_handler(void (*)(void *, char const *, bool), void *)`
        #[link_name = "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_"]
        fn install_bad_alloc_error_handler(handler: extern "C" fn(*mut c_void, *const c_char, bool), data: *mut c_void);
    }

    /// Installs both.
    pub(super) fn install_handlers() {
        // SAFETY: the name's signature is this one; the handler uses no data. LLVM asserts that there is no handler
        // yet: this is called once, and nothing else in the process has this copy of LLVM.
        unsafe { install_bad_alloc_error_handler(containers, std::ptr::null_mut()) };
        if let Some(previous) = set_new_handler(Some(operator_new)) {
            PREVIOUS.store(previous as *mut c_void, Ordering::Release);
        }
    }

    /// Called by LLVM's containers.
    extern "C" fn containers(_: *mut c_void, _: *const c_char, _: bool) {
        lose(Outcome::OutOfMemory);
        last_resort();
    }

    /// Called by `operator new`, again and again until there is memory or no handler. On other threads than those of
    /// this file the process has the handler again that it had before.
    extern "C" fn operator_new() {
        if release_reserve() {
            return;
        }
        lose(Outcome::OutOfMemory);
        last_resort();
        let previous = PREVIOUS.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a `NewHandler` that the C++ runtime returned; null is `None`.
        set_new_handler(unsafe { std::mem::transmute::<*mut c_void, Option<NewHandler>>(previous) });
    }
}

/// Elsewhere the process ends when memory runs out.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod memory {
    pub(super) fn install_handlers() {}
}
