//! Memory that runs out: requests that can fail, and the last resort of a program where no error can be returned.

use std::cell::Cell;
use std::sync::OnceLock;

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
    let before = IS_FALLIBLE.replace(true);
    let result = request();
    IS_FALLIBLE.set(before);
    result
}
