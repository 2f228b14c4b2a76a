//! Cancellation tokens, by which a running program is asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xla_hlo::{Error, Result};

/// Asks programs to stop: clones share the request. Tokens are equal if they share it.
///
/// A program looks at its token before each step on the host, which for native loops means once an iteration; work
/// already sent to a device is finished there. Devices that cannot look at the token leave loops of runs that can be
/// cancelled to the host. A run that stops returns [`Error::Cancelled`] and leaves nothing behind.
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
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    /// Nobody can cancel it.
    is_never: bool,
}

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// A token that nobody can cancel: [`CancelToken::cancel`] does nothing.
    pub fn never() -> CancelToken {
        CancelToken { flag: Arc::default(), is_never: true }
    }

    /// Whether somebody may still ask, or has.
    pub fn can_cancel(&self) -> bool {
        !self.is_never
    }

    /// Asks everything that looks at this token to stop, for good.
    pub fn cancel(&self) {
        if self.can_cancel() {
            self.flag.store(true, Ordering::Relaxed);
        }
    }

    /// Whether somebody has asked.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// [`Error::Cancelled`] if somebody has asked.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled("the run was cancelled")) } else { Ok(()) }
    }

    /// The flag itself, true when cancelled: for the evaluator, and for compiled code that polls it.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }
}

impl PartialEq for CancelToken {
    fn eq(&self, other: &CancelToken) -> bool {
        Arc::ptr_eq(&self.flag, &other.flag)
    }
}

impl Eq for CancelToken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_tokens_cannot_be_cancelled() {
        let (token, never) = (CancelToken::new(), CancelToken::never());
        assert!(token.can_cancel() && !never.can_cancel());
        token.cancel();
        never.cancel();
        assert!(token.check().is_err() && never.check().is_ok() && !never.clone().is_cancelled());
    }
}
