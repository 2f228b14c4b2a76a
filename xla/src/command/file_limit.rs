//! Limit of file sizes: a write beyond it is an error of that write instead of the signal that ends the process.
#![expect(unsafe_code, reason = "the standard library cannot ignore signals")]

/// Ignores `SIGXFSZ`, here and in the processes that the command starts: writes fail with `EFBIG` instead.
#[cfg(unix)]
pub fn report_as_error() {
    // SAFETY: `SIG_IGN` installs no handler, so no code of this process runs when the signal arrives.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(not(unix))]
pub fn report_as_error() {}
