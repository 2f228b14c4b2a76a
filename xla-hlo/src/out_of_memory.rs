//! Memory that runs out: requests that can fail, and the last resort of a program where no error can be returned.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::{Error, Result};

/// Function that ends the process.
static LAST_RESORT: OnceLock<fn()> = OnceLock::new();

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
    if let Some(resort) = LAST_RESORT.get().filter(|_| !IS_FALLIBLE.get()) {
        resort();
    }
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
const ROOM: usize = 40 << 20;

/// Checks that there is memory for one step of a compilation, whose many small requests have no error path.
/// [`Error::ResourceExhausted`] if not.
pub fn ensure_room() -> Result<()> {
    let mut room: Vec<u8> = Vec::new();
    fallible(|| room.try_reserve_exact(ROOM)).map_err(|_| {
        Error::resource_exhausted("memory ran out; raise the limit of this process, or take a smaller program")
    })
}
