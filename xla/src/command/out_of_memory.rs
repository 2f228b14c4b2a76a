//! Out-of-memory handler of the command: reports one error and exits with code 1 instead of aborting.
#![expect(unsafe_code, reason = "the standard library cannot end a process at once")]

use std::io::Write;

/// Reports the error without an allocation, and ends the process.
pub fn end() {
    // If standard error is closed, the exit code still indicates the failure.
    let _ = std::io::stderr()
        .write_all(b"error: memory ran out; raise the limit of this process, or take a smaller program\n");
    xla::service::remove_temporaries();
    leave(i32::from(super::failure::FAILED))
}

/// Ends the process without running the destructors of libraries, which other threads may still use.
#[cfg(unix)]
fn leave(status: i32) -> ! {
    // SAFETY: the function has no preconditions.
    unsafe { libc::_exit(status) }
}

#[cfg(not(unix))]
fn leave(status: i32) -> ! {
    std::process::exit(status)
}
