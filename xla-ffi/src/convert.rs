//! Conversions between C pointers of handlers and Rust values: errors, futures, texts, objects with deleters.
#![expect(unsafe_code, reason = "reads what C points to")]

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};
use std::{ptr, slice, str};

use xla_hlo::{Error, Result};
use xla_service::{Completer, Completion};

use crate::abi::ByteSpan;
use crate::error::FfiError;

/// Completion of asynchronous work that a handler started.
pub(crate) struct Future {
    pub completion: Completion,
    completer: Mutex<Option<Completer>>,
}

impl Future {
    fn new() -> Future {
        let (completion, completer) = Completion::pending();
        Future { completion, completer: Mutex::new(Some(completer)) }
    }

    /// Sets the outcome. Fails if it was set before.
    pub fn set(&self, outcome: Result<()>) -> Result<()> {
        let completer = self.completer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let completer = completer.ok_or_else(|| Error::failed_precondition("the future was already set"))?;
        completer.set(outcome);
        Ok(())
    }
}

/// Transfers an error to C, which must return it to [`take_error`].
pub(crate) fn lend_error(error: FfiError) -> *mut c_void {
    Box::into_raw(Box::new(error)).cast()
}

/// Takes an error back from C; `None` for null.
///
/// # Safety
///
/// The pointer must be null or come from [`lend_error`], and must have no further uses.
pub(crate) unsafe fn take_error(error: *mut c_void) -> Option<FfiError> {
    // SAFETY: by contract.
    (!error.is_null()).then(|| *unsafe { Box::from_raw(error.cast::<FfiError>()) })
}

/// Creates a future for C. The runtime owns it: the handler returns it in the call's frame, and sets it once.
pub(crate) fn lend_future() -> *mut c_void {
    Box::into_raw(Box::new(Future::new())).cast()
}

/// Returns the future of this library at a pointer.
///
/// # Safety
///
/// The pointer must be null or come from [`lend_future`], and must not have been awaited.
pub(crate) unsafe fn future<'a>(future: *mut c_void) -> Result<&'a Future> {
    // SAFETY: by contract.
    unsafe { future.cast::<Future>().as_ref() }.ok_or_else(|| Error::invalid_argument("a future must not be null"))
}

/// Waits for a future that a handler returned, and frees it; null counts as done.
///
/// # Safety
///
/// The requirements of [`future()`]. The handler must set the future before it drops its pointer, and must not access
/// it afterwards.
pub(crate) unsafe fn await_future(pointer: *mut c_void) -> Result<()> {
    if pointer.is_null() {
        return Ok(());
    }
    // SAFETY: by contract. The box outlives the wait. The thread that sets the future does not access it after the
    // wait, except to release its lock; taking the lock below waits for that.
    let future = unsafe { Box::from_raw(pointer.cast::<Future>()) };
    let outcome = future.completion.wait();
    drop(future.completer.lock().unwrap_or_else(PoisonError::into_inner));
    outcome
}

impl ByteSpan {
    /// Copies the text, which is valid during the call.
    ///
    /// # Safety
    ///
    /// `start` must be null, or `len` bytes must be readable there.
    pub unsafe fn text(&self) -> Result<String> {
        let bytes = match self.start.is_null() || self.len == 0 {
            true => &[][..],
            // SAFETY: by contract.
            false => unsafe { slice::from_raw_parts(self.start, self.len) },
        };
        let text = str::from_utf8(bytes).map_err(|_| Error::invalid_argument("a name must be UTF-8"))?;
        Ok(text.to_string())
    }
}

/// Frees an object with the deleter of its type.
///
/// # Safety
///
/// `deleter` must be 0 or the address of a `void (*)(void*)` that may be called once with `object`.
pub(crate) unsafe fn end_object(deleter: usize, object: usize) {
    let deleter: *const c_void = ptr::with_exposed_provenance(deleter);
    // SAFETY: by contract; null is `None`.
    let deleter: Option<unsafe extern "C" fn(*mut c_void)> = unsafe { std::mem::transmute(deleter) };
    if let Some(deleter) = deleter {
        // SAFETY: by contract.
        unsafe { deleter(ptr::with_exposed_provenance_mut(object)) };
    }
}
