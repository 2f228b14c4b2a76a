//! Memory of callers, lent to the service for reading until nobody needs it any more.
#![expect(unsafe_code, reason = "keeps raw memory that its owner takes back by a callback")]

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::workers::host_call;

/// Bytes that somebody else owns, for reading. When it is dropped, its owner is told.
///
/// The service never writes to them and never gives them away: a program that such an argument is donated to gets a
/// copy.
pub struct OutsideMemory {
    start: NonNull<u8>,
    size: usize,
    /// There until dropped; only the drop takes it, so that the lock is never waited for.
    on_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

// SAFETY: the bytes are only read, by contract of `new` from any thread, and the callback may move between threads.
unsafe impl Send for OutsideMemory {}
// SAFETY: as above; the callback is behind a lock.
unsafe impl Sync for OutsideMemory {}

impl OutsideMemory {
    /// `size` bytes from `start` on. `on_drop` is called once, when nothing reads them any more: no buffer, no hold,
    /// no program that runs. It may call anything of this crate, from whatever thread drops the last user.
    ///
    /// # Safety
    ///
    /// Until `on_drop` is called, the bytes must stay valid for reads from any thread, initialised, and unchanged.
    pub unsafe fn new(start: NonNull<u8>, size: usize, on_drop: impl FnOnce() + Send + 'static) -> OutsideMemory {
        OutsideMemory { start, size, on_drop: Mutex::new(Some(Box::new(on_drop))) }
    }

    /// A range of shared bytes, cut down to what there is.
    pub fn shared(bytes: Arc<[u8]>, range: Range<usize>, on_drop: impl FnOnce() + Send + 'static) -> OutsideMemory {
        let part = bytes.get(range).unwrap_or_default();
        let (start, size) = (NonNull::from(part).cast(), part.len());
        // SAFETY: the callback owns a share of the bytes, so that nobody frees or changes them before it is called.
        unsafe {
            OutsideMemory::new(start, size, move || {
                drop(bytes);
                on_drop();
            })
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: by contract of `new`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// The first byte, for compiled code that reads while this is borrowed.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for OutsideMemory {
    fn drop(&mut self) {
        let on_drop = self.on_drop.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_drop) = on_drop {
            host_call(on_drop);
        }
    }
}

impl fmt::Debug for OutsideMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutsideMemory({} bytes)", self.size)
    }
}
