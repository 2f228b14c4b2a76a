//! Availability of the process's rayon pool, checked before each use: rayon panics if its threads cannot be started.

use std::error::Error;
use std::sync::OnceLock;

/// Whether rayon's global pool has its threads; the first call starts them.
///
/// Returns `false`, permanently, if the system has no threads or memory for them; work is then done on the calling
/// thread. Every use of rayon's global pool must call this first.
pub fn has_thread_pool() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    // A thread of rayon uses its own pool.
    rayon::current_thread_index().is_some()
        || *STARTED.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            // An error without a cause means that the application has started the pool already.
            Err(error) => error.source().is_none(),
        })
}
