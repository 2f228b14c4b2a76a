//! The process's rayon pool, asked for before it is used: rayon panics where its threads cannot be started.

use std::error::Error;
use std::sync::OnceLock;

/// Whether rayon's global pool has its threads; starts them at the first call.
///
/// `false` where the system has no thread or no memory for them, and from then on: work is then done on the calling
/// thread. Every use of rayon's global pool asks first.
pub fn has_thread_pool() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    // On one of rayon's threads the pool is that thread's.
    rayon::current_thread_index().is_some()
        || *STARTED.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            // An error without a cause: the application has started it.
            Err(error) => error.source().is_none(),
        })
}
