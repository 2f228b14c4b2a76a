//! External memory: memory of callers, borrowed for reading until its last user is dropped.
#![expect(unsafe_code, reason = "keeps raw memory that its owner takes back by a callback")]

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::workers::host_call;

/// Read-only bytes with an external owner, which is notified when this value is dropped.
///
/// The service never writes to the memory and never donates it: a program receives a copy of such a donated argument.
pub struct ExternalMemory {
    start: NonNull<u8>,
    size: usize,
    /// Callback, present until the drop. Only the drop accesses it, so the lock is never contended.
    on_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

// SAFETY: the bytes are only read, which the contract of `new` allows from any thread, and the callback may move
// between threads.
unsafe impl Send for ExternalMemory {}
// SAFETY: as above; a lock guards the callback.
unsafe impl Sync for ExternalMemory {}

impl ExternalMemory {
    /// Wraps `size` bytes from `start` on. `on_drop` is called once, after the last reader (buffer, hold or running
    /// program) is gone. It may call any function of this crate, and runs on the thread that drops the last reader.
    ///
    /// # Safety
    ///
    /// Until `on_drop` is called, the bytes must stay valid for reads from any thread, initialised, and unchanged.
    pub unsafe fn new(start: NonNull<u8>, size: usize, on_drop: impl FnOnce() + Send + 'static) -> ExternalMemory {
        ExternalMemory { start, size, on_drop: Mutex::new(Some(Box::new(on_drop))) }
    }

    /// Wraps a range of shared bytes; empty if the range is out of bounds.
    pub fn shared(bytes: Arc<[u8]>, range: Range<usize>, on_drop: impl FnOnce() + Send + 'static) -> ExternalMemory {
        let part = bytes.get(range).unwrap_or_default();
        let (start, size) = (NonNull::from(part).cast(), part.len());
        // SAFETY: the callback owns a share of the bytes, so that they are neither freed nor changed before it is
        // called.
        unsafe {
            ExternalMemory::new(start, size, move || {
                drop(bytes);
                on_drop();
            })
        }
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: guaranteed by the contract of `new`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// Returns the first byte, for compiled code that reads while this value is borrowed.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for ExternalMemory {
    fn drop(&mut self) {
        let on_drop = self.on_drop.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_drop) = on_drop {
            host_call(on_drop);
        }
    }
}

impl fmt::Debug for ExternalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalMemory({} bytes)", self.size)
    }
}
