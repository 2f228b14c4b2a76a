//! Out-of-memory handling: allocations that may fail, and handlers for allocations without an error path.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{Error, Result};

/// Handler that reports the error and ends the process.
static LAST_RESORT: OnceLock<fn()> = OnceLock::new();

/// Handler that abandons the work of this thread, if another thread waits for its result.
static THREAD_RESORT: OnceLock<fn()> = OnceLock::new();

thread_local! {
    /// Whether the thread is inside [`fallible`].
    static IS_FALLIBLE: Cell<bool> = const { Cell::new(false) };
}

/// Sets the handler that runs when memory is exhausted and the process would abort. It reports the error, ends the
/// process and allocates nothing. Intended for programs that own their process, such as the `xla` command. Only the
/// first call has an effect.
pub fn set_last_resort(resort: fn()) {
    // A process has only one program that owns it.
    let _ = LAST_RESORT.set(resort);
}

/// Runs the [last resort](set_last_resort), which does not return, if one is set and the thread is not inside
/// [`fallible`].
pub fn last_resort() {
    if let Some(resort) = LAST_RESORT.get().filter(|_| !is_fallible()) {
        resort();
    }
}

/// Sets the handler that runs when memory is exhausted in a process without a [last resort](set_last_resort). On a
/// thread that another thread waits for, it reports the error to the waiting thread and does not return; on other
/// threads it returns. Only the first call has an effect.
pub fn set_thread_resort(resort: fn()) {
    // A process has only one code generator.
    let _ = THREAD_RESORT.set(resort);
}

/// Abandons the work of this thread if [possible](set_thread_resort), in a process without a last resort.
pub fn leave_thread() {
    if let Some(resort) = THREAD_RESORT.get().filter(|_| LAST_RESORT.get().is_none() && !is_fallible()) {
        resort();
    }
}

/// Whether this thread is inside [`fallible`].
pub fn is_fallible() -> bool {
    IS_FALLIBLE.get()
}

/// Runs an allocation that may fail with an error: the handlers of this module stay inactive in `request`. All
/// allocations whose sizes come from input are made here.
pub fn fallible<T>(request: impl FnOnce() -> T) -> T {
    /// Restores the flag, also if `request` panics.
    struct Restored(bool);

    impl Drop for Restored {
        fn drop(&mut self) {
            IS_FALLIBLE.set(self.0);
        }
    }

    let _restored = Restored(IS_FALLIBLE.replace(true));
    request()
}

/// Size in bytes that one step of a compilation rarely exceeds. It is above 32 MiB, up to which the C library may keep
/// released memory for later allocations instead of returning it to the system.
const RESERVE: usize = 40 << 20;

/// Reserved memory, never written to, for allocations without an error path.
static RESERVED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Reserves memory for one step of a compilation, whose small allocations have no error path, and keeps it until
/// [`release_reserve`]. Fails with [`Error::ResourceExhausted`] if there is too little.
pub fn ensure_room() -> Result<()> {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = match reserved.capacity() {
        0 => fallible(|| reserved.try_reserve_exact(RESERVE)),
        _ => Ok(()),
    };
    drop(reserved);
    taken.map_err(|_| {
        Error::resource_exhausted("memory ran out; raise the limit of this process, or take a smaller program")
    })
}

/// Total size in bytes of the small allocations that starting a thread requires.
const THREAD_ROOM: usize = 64 << 10;

/// Checks that there is enough memory to start a thread. The standard library makes some of these allocations through
/// the system's allocator, not through the program's allocator with its reserve, and aborts if they fail. Fails with
/// [`Error::ResourceExhausted`] if there is too little.
pub fn ensure_thread_room() -> Result<()> {
    let room = fallible(|| Vec::<u8>::new().try_reserve_exact(THREAD_ROOM));
    room.map_err(|_| Error::resource_exhausted("memory ran out: there is not enough to start a thread"))
}

/// Returns the reserve of [`ensure_room`] to the system, so that a failed allocation can be retried. Returns whether
/// there was a reserve to release; always `false` inside [`fallible`].
pub fn release_reserve() -> bool {
    if is_fallible() {
        return false;
    }
    // If another thread holds the lock, it is taking or releasing the reserve itself.
    let Ok(mut reserved) = RESERVED.try_lock() else { return false };
    let bytes = std::mem::take(&mut *reserved);
    drop(reserved);
    bytes.capacity() > 0
}
