//! Detection of processes that were forked off one with a client, whose threads they do not have.
#![cfg_attr(unix, expect(unsafe_code, reason = "has the C library call back after each fork"))]

use std::sync::atomic::{AtomicBool, Ordering};

use xla_hlo::{Error, Result};

static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Begins to watch for forks; until then threads of this crate do not exist.
pub(crate) fn watch() -> Result<()> {
    #[cfg(unix)]
    {
        extern "C" fn note() {
            IS_FORKED.store(true, Ordering::Relaxed);
        }
        // SAFETY: the function of POSIX, as its header declares it.
        unsafe extern "C" {
            fn pthread_atfork(
                before: Option<extern "C" fn()>,
                parent: Option<extern "C" fn()>,
                child: Option<extern "C" fn()>,
            ) -> i32;
        }
        static STATUS: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
        // SAFETY: the function is there as long as this library, and does what may be done after a fork: a store.
        let status = *STATUS.get_or_init(|| unsafe { pthread_atfork(None, None, Some(note)) });
        if status != 0 {
            return Err(Error::resource_exhausted("no memory to watch for forks of this process"));
        }
    }
    Ok(())
}

/// Whether this process was forked, so that threads which should do work or hold locks are not here.
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// An error in a process that was forked.
pub(crate) fn check() -> Result<()> {
    if is_forked() {
        return Err(Error::failed_precondition(
            "this process was forked from one with a client, whose threads it does not have: spawn processes, or fork \
             before the first use",
        ));
    }
    Ok(())
}
