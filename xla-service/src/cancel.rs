//! A flag by which a running program is asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xla_hlo::{Error, Result};

/// Asks programs to stop: clones share the request. Tokens are equal if they share it.
///
/// A program looks at its token before each step on the host, which for native loops means once an iteration; what already was sent to
/// a device is finished there. A run that stops gives [`Error::Cancelled`] and leaves nothing behind.
///
/// ```
/// use xla_service::CancelToken;
///
/// let token = CancelToken::new();
/// let other = token.clone();
/// assert!(token.check().is_ok());
/// other.cancel();
/// assert!(token.check().unwrap_err().to_string().contains("cancelled"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Asks everything that looks at this token to stop, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`Error::Cancelled`] if somebody has asked.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled("the run was cancelled")) } else { Ok(()) }
    }

    /// The flag itself, true when cancelled: for the evaluator, and for compiled code that polls it.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

impl PartialEq for CancelToken {
    fn eq(&self, other: &CancelToken) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CancelToken {}
