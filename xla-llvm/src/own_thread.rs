//! Execution of LLVM on a thread that can be abandoned, so that fatal errors of LLVM, including lack of memory, do not
//! terminate the process.
//!
//! LLVM has errors that it does not return, such as instructions that it cannot select, or processors that contradict
//! their triple. It reports them to a handler that must not return, and calls `abort` if it does. Unwinding out of the
//! handler is not possible, since LLVM is built without exceptions, and a list of unsupported cases would never be
//! complete. Therefore LLVM works on a thread of its own while the caller waits. This includes the emission of IR,
//! since all of LLVM allocates memory. The handler runs on that thread, sends LLVM's message to the caller, and then
//! sleeps forever: LLVM's state is neither cleaned up nor used again. Each such error leaks a thread and its memory.
//!
//! Lack of memory takes the same path. LLVM's containers report it to a separate handler. `operator new` reports it to
//! the handler of the C++ runtime, which would throw an exception through code that is built without exceptions. The
//! allocator of Rust reports it by [`leave_thread`](xla_hlo::out_of_memory::leave_thread).
#![expect(unsafe_code, reason = "LLVM's handler is a C function")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::mpsc::{SyncSender, sync_channel};

use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use xla_hlo::out_of_memory::{ensure_room, ensure_thread_room, set_thread_resort};
use xla_hlo::{Error, Result};

/// Stack size for code generation in bytes: instruction selection is recursive.
pub const CODE_STACK: usize = 16 << 20;

/// Stack size for the emission of large kernels in bytes: the recursion depth is the depth of the expression.
pub(crate) const DEEP_STACK: usize = 128 << 20;

/// Reason to abandon a thread.
enum Loss {
    /// Fatal error of LLVM, with its message.
    Fatal(String),
    OutOfMemory,
}

thread_local! {
    /// Receiver of a fatal error on this thread; taken by `run`. It has no destructor: the C library would register one
    /// at the first access, and terminates the process if memory has run out.
    static WAITING: RefCell<ManuallyDrop<Option<SyncSender<Loss>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Sets the receiver of this thread's fatal error and returns the previous one.
fn wait_for(sender: Option<SyncSender<Loss>>) -> Option<SyncSender<Loss>> {
    WAITING.with(|waiting| std::mem::replace(&mut **waiting.borrow_mut(), sender))
}

/// Guard that removes this thread's receiver at the end of the work, even on a panic; the channel is then closed.
struct Attended;

impl Drop for Attended {
    fn drop(&mut self) {
        wait_for(None);
    }
}

/// Runs `work`, which calls LLVM, on a thread with a stack of `stack_bytes` bytes.
///
/// If LLVM fails fatally, the thread is abandoned, and `fatal` creates the error from LLVM's message.
/// Fails with [`Error::ResourceExhausted`] if memory runs out or no thread can be started.
pub fn run<'a, R: Send + 'a>(
    stack_bytes: usize,
    work: impl FnOnce() -> Result<R> + Send + 'a,
    fatal: impl FnOnce(&str) -> Error,
) -> Result<R> {
    install_handlers();
    ensure_room()?;
    // The channel has room for one message, so that nothing is allocated after memory has run out.
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        let _attended = Attended;
        wait_for(Some(sender));
        work()
    };
    ensure_thread_room()?;
    let thread = std::thread::Builder::new().name("llvm".to_string()).stack_size(stack_bytes);
    // SAFETY: this function returns when the thread has ended, or when the thread sleeps forever and never again uses
    // anything that `work` borrows.
    let thread = unsafe { thread.spawn_unchecked(run) };
    let thread = thread.map_err(|reason| {
        Error::resource_exhausted(format!("the thread for code generation cannot be started: {reason}"))
    })?;
    match receiver.recv() {
        // The lines after the first print the graph of an instruction that cannot be selected.
        Ok(Loss::Fatal(reason)) => Err(fatal(reason.lines().next().unwrap_or_default().trim_end())),
        Ok(Loss::OutOfMemory) => Err(out_of_memory()),
        Err(_) => thread.join().map_err(|panic| panicked(&*panic))?,
    }
}

/// Returns the error for a panic of the code generator.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    // LLVM returns null instead of a string for which there is no memory; inkwell asserts that there is one.
    match panic.downcast_ref::<&str>() {
        Some(text) if text.contains("!ptr.is_null()") => out_of_memory(),
        _ => Error::internal("the code generator panicked"),
    }
}

fn out_of_memory() -> Error {
    Error::resource_exhausted("memory ran out while LLVM generated code")
}

/// Installs the handlers of this file in LLVM, once.
pub(crate) fn install_handlers() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handler is a function of the required type, and does not return on threads that are started here.
        unsafe { LLVMInstallFatalErrorHandler(Some(report)) };
        memory::install_handlers();
        set_thread_resort(|| lose(Loss::OutOfMemory));
    });
}

/// Handler that LLVM calls before it terminates the process.
extern "C" fn report(reason: *const c_char) {
    // SAFETY: LLVM passes a C string.
    fatal_error(unsafe { CStr::from_ptr(reason) });
}

/// Abandons this thread because of a fatal error of LLVM. Returns only on a thread that [`run`] did not start.
pub fn fatal_error(reason: &CStr) {
    lose(Loss::Fatal(reason.to_string_lossy().into_owned()));
}

/// Sends the reason to the waiting thread and sleeps forever. Returns on a thread without a waiting one: the process
/// then terminates, as it does without a handler.
fn lose(loss: Loss) {
    let waiting = wait_for(None);
    if waiting.is_some_and(|waiting| waiting.send(loss).is_ok()) {
        loop {
            std::thread::park();
        }
    }
}

/// Handlers of LLVM and of the C++ runtime for lack of memory. Neither has a C interface; their names follow the
/// Itanium C++ ABI, which all systems except Windows use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory {
    use std::sync::atomic::{AtomicPtr, Ordering};

    use xla_hlo::out_of_memory::{last_resort, release_reserve};

    use super::{Loss, c_char, c_void, lose};

    /// Type of `std::new_handler`. A handler that has no memory to offer throws `std::bad_alloc`.
    type NewHandler = extern "C-unwind" fn();

    /// Previous handler of `operator new`; null for none.
    static PREVIOUS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

    // SAFETY: the signatures are those of the C++ standard library, and all argument values are valid.
    #[link(name = "stdc++")]
    unsafe extern "C-unwind" {
        /// `std::set_new_handler(void (*)())`: sets the handler and returns the previous one.
        #[link_name = "_ZSt15set_new_handlerPFvvE"]
        safe fn set_new_handler(handler: Option<NewHandler>) -> Option<NewHandler>;

        /// `std::__throw_bad_alloc()`: throws `std::bad_alloc`.
        #[link_name = "_ZSt17__throw_bad_allocv"]
        safe fn throw_bad_alloc() -> !;
    }

    // SAFETY: the signature is declared in `llvm/Support/ErrorHandling.h`.
    unsafe extern "C" {
        /// `llvm::install_bad_alloc_error_handler(void (*)(void *, char const *, bool), void *)`: sets the handler.
        #[link_name = "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_"]
        fn install_bad_alloc_error_handler(handler: extern "C" fn(*mut c_void, *const c_char, bool), data: *mut c_void);
    }

    /// Installs both handlers.
    pub(super) fn install_handlers() {
        // SAFETY: the name has this signature, and the handler uses no data. LLVM asserts that there is no handler yet:
        // this is called once, and no other code in the process has this copy of LLVM.
        unsafe { install_bad_alloc_error_handler(containers, std::ptr::null_mut()) };
        if let Some(previous) = set_new_handler(Some(operator_new)) {
            PREVIOUS.store(previous as *mut c_void, Ordering::Release);
        }
    }

    /// Handler for LLVM's containers.
    extern "C" fn containers(_: *mut c_void, _: *const c_char, _: bool) {
        lose(Loss::OutOfMemory);
        last_resort();
    }

    /// Handler for `operator new`, which calls it repeatedly until memory is available.
    ///
    /// On threads of other libraries, it calls the previous handler, or throws the exception that `operator new` throws
    /// without a handler. No value in this frame has a destructor.
    extern "C-unwind" fn operator_new() {
        if release_reserve() {
            return;
        }
        lose(Loss::OutOfMemory);
        last_resort();
        let previous = PREVIOUS.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a `NewHandler` that the C++ runtime returned; null is `None`.
        match unsafe { std::mem::transmute::<*mut c_void, Option<NewHandler>>(previous) } {
            Some(previous) => previous(),
            None => throw_bad_alloc(),
        }
    }
}

/// On other systems, the process terminates when memory runs out.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod memory {
    pub(super) fn install_handlers() {}
}
