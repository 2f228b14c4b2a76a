//! Handles, answers of calls, and sentences about misuse.

use std::io::Write;

use super::status::Status;

/// Result of a call: nothing or a value, or a status code.
pub(crate) type DriverResult<T = ()> = Result<T, Status>;

/// Failure of work: the driver's code, and a sentence.
pub(crate) type Failure = (Status, String);

/// A number that stands for something of the driver.
pub(crate) type Handle = u64;

/// Says something to whoever runs the tests.
pub(crate) fn tell(sentence: &str) {
    // Nobody can be told that nobody can be told.
    let _ = writeln!(std::io::stderr(), "simulated-gpu: {sentence}");
}

/// A call that the driver must not get, which it tells, and answers with a code.
pub(crate) fn misuse<T>(sentence: &str, status: Status) -> DriverResult<T> {
    tell(&format!("misuse of the driver: {sentence}"));
    Err(status)
}
