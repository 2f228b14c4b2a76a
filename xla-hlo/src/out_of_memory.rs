//! Memory that runs out: requests that can fail, and the last resort of a program where no error can be returned.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{Error, Result};

/// Function that ends the process.
static LAST_RESORT: OnceLock<fn()> = OnceLock::new();

/// Function that ends the work of this thread, if it is work that can be lost.
static THREAD_RESORT: OnceLock<fn()> = OnceLock::new();

thread_local! {
    /// Whether the thread is inside of [`fallible`].
    static IS_FALLIBLE: Cell<bool> = const { Cell::new(false) };
}

/// Sets the function that runs where memory has run out and the process would abort. It reports the error and ends the
/// process, and allocates nothing. For programs that own their process, such as the `xla` command; only the first call
/// counts.
pub fn set_last_resort(resort: fn()) {
    // A process has one program that owns it.
    let _ = LAST_RESORT.set(resort);
}

/// Runs the [last resort](set_last_resort), which does not return, if there is one and the thread is not inside of
/// [`fallible`].
pub fn last_resort() {
    if let Some(resort) = LAST_RESORT.get().filter(|_| !is_fallible()) {
        resort();
    }
}

/// Sets the function that runs where memory has run out in a process without a [last resort](set_last_resort). On a
/// thread that another one waits for it reports the error to that one and does not return; on others it returns. Only
/// the first call counts.
pub fn set_thread_resort(resort: fn()) {
    // There is one code generator in a process.
    let _ = THREAD_RESORT.set(resort);
}

/// Ends the work of this thread if it [can be lost](set_thread_resort), in a process without a last resort.
pub fn leave_thread() {
    if let Some(resort) = THREAD_RESORT.get().filter(|_| LAST_RESORT.get().is_none() && !is_fallible()) {
        resort();
    }
}

/// Whether this thread is inside of [`fallible`].
pub fn is_fallible() -> bool {
    IS_FALLIBLE.get()
}

/// Requests memory that there may be too little of: `request` returns an error then. All reservations of sizes that
/// come from input are requested in here.
pub fn fallible<T>(request: impl FnOnce() -> T) -> T {
    /// Restores the flag, also where `request` panics.
    struct Restored(bool);

    impl Drop for Restored {
        fn drop(&mut self) {
            IS_FALLIBLE.set(self.0);
        }
    }

    let _restored = Restored(IS_FALLIBLE.replace(true));
    request()
}

/// Bytes that one step of a compilation hardly exceeds. They are more than 32 MiB, up to which the C library may keep
/// released memory for later requests.
const RESERVE: usize = 40 << 20;

/// Memory that nothing is written to, for requests without an error path.
static RESERVED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Checks that there is memory for one step of a compilation, whose many small requests have no error path, and keeps
/// it until [`release_reserve`]. [`Error::ResourceExhausted`] if there is too little.
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

/// Bytes of the small requests that starting a thread takes.
const THREAD_ROOM: usize = 64 << 10;

/// Checks that there is memory to start a thread with. The standard library requests some of it from the system's
/// allocator, not from the program's, which has a reserve, and aborts where there is none.
/// [`Error::ResourceExhausted`] if there is too little.
pub fn ensure_thread_room() -> Result<()> {
    let room = fallible(|| Vec::<u8>::new().try_reserve_exact(THREAD_ROOM));
    room.map_err(|_| Error::resource_exhausted("memory ran out: none is left to start a thread with"))
}

/// Returns to the system the memory that [`ensure_room`] keeps for a step, for a request that has failed and is made
/// again. Returns whether there was any; there is none inside of [`fallible`].
pub fn release_reserve() -> bool {
    if is_fallible() {
        return false;
    }
    // Another thread that holds the lock takes or releases it.
    let Ok(mut reserved) = RESERVED.try_lock() else { return false };
    let bytes = std::mem::take(&mut *reserved);
    drop(reserved);
    bytes.capacity() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_released_once_and_not_for_requests_that_can_fail() {
        ensure_room().unwrap();
        assert!(!fallible(release_reserve));
        assert!(release_reserve());
        assert!(!release_reserve());
        ensure_room().unwrap();
        assert!(std::panic::catch_unwind(|| fallible(|| panic!())).is_err());
        assert!(release_reserve(), "the flag is as it was before the panic");
    }
}
