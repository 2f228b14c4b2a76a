//! Handles, results of calls, and messages about misuse of the API.

use std::io::Write;

use super::status::Status;

/// Result of a call: a value, or a status code.
pub(crate) type DriverResult<T = ()> = Result<T, Status>;

/// Failure of work: status code and message.
pub(crate) type Failure = (Status, String);

/// Handle of an object of the driver.
pub(crate) type Handle = u64;

/// Prints a sentence on stderr.
pub(crate) fn tell(sentence: &str) {
    // An error of stderr itself cannot be reported.
    let _ = writeln!(std::io::stderr(), "simulated-gpu: {sentence}");
}

/// Reports a call that violates the API's contract, and returns an error status.
pub(crate) fn misuse<T>(sentence: &str, status: Status) -> DriverResult<T> {
    tell(&format!("misuse of the driver: {sentence}"));
    Err(status)
}
