//! Panics: recorded for the error message at the end of the command instead of printed.

use std::panic;
use std::sync::{Mutex, PoisonError};

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Installs a hook that records panics instead of printing them.
pub fn keep_quiet() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        let place = info.location().map(|at| format!(" at {at}")).unwrap_or_default();
        let message = format!("panic{place}: {}", text.unwrap_or("without a message"));
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }));
}

/// Returns the message and location of the last panic.
pub fn last() -> Option<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
