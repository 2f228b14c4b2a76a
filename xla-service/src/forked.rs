//! Detection of forked child processes, which lack the threads of their parent's clients.
#![cfg_attr(unix, expect(unsafe_code, reason = "has the C library call back after each fork"))]

use std::sync::atomic::{AtomicBool, Ordering};

use xla_hlo::{Error, Result};

static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Registers the fork handler, before this crate creates its first thread.
pub(crate) fn watch() -> Result<()> {
    #[cfg(unix)]
    {
        extern "C" fn note() {
            IS_FORKED.store(true, Ordering::Relaxed);
        }
        // SAFETY: the declaration matches POSIX `pthread_atfork`.
        unsafe extern "C" {
            fn pthread_atfork(
                before: Option<extern "C" fn()>,
                parent: Option<extern "C" fn()>,
                child: Option<extern "C" fn()>,
            ) -> i32;
        }
        static STATUS: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
        // SAFETY: the handler exists as long as this library, and does only what is allowed after a fork: an atomic
        // store.
        let status = *STATUS.get_or_init(|| unsafe { pthread_atfork(None, None, Some(note)) });
        if status != 0 {
            return Err(Error::resource_exhausted("cannot register a handler for forks: out of memory"));
        }
    }
    Ok(())
}

/// Whether this process is a forked child. Its worker threads, and threads that held locks, do not exist here.
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Returns an error in a forked child process.
pub(crate) fn check() -> Result<()> {
    if is_forked() {
        return Err(Error::failed_precondition(
            "this process was forked from one with a client, whose threads it does not have: spawn processes, or fork \
             before the first use",
        ));
    }
    Ok(())
}
