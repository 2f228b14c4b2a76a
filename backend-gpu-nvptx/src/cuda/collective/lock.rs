//! Locks whose state is valid between any two statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a state, also after a panic of another thread.
pub(super) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
