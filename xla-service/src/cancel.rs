//! Cancellation tokens, which request that a running program stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use xla_hlo::{Error, Result};

/// Cancellation request, shared by all clones of a token. Two tokens are equal if they share the request.
///
/// A program checks its token before each step on the host, thus once per iteration in native loops. Work that was
/// already sent to a device completes. If a device cannot check the token, loops of cancellable runs are executed by
/// the host. A cancelled run returns [`Error::Cancelled`] and leaves no side effects.
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
    /// Flags of tokens that are cancelled with this one.
    children: Arc<Mutex<Vec<Weak<AtomicBool>>>>,
    /// Whether the token ignores [`CancelToken::cancel`].
    is_never: bool,
}

impl CancelToken {
    /// Creates a token that is not cancelled yet.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Creates a token that cannot be cancelled: [`CancelToken::cancel`] does nothing.
    pub fn never() -> CancelToken {
        CancelToken { is_never: true, ..CancelToken::default() }
    }

    /// Whether the token can be cancelled, or already is.
    pub fn can_cancel(&self) -> bool {
        !self.is_never
    }

    /// Requests that all programs with this token stop. The request cannot be revoked.
    pub fn cancel(&self) {
        if self.can_cancel() {
            // The lock orders this with `child`: either it finds the flag set, or the child is in the list.
            let children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
            self.flag.store(true, Ordering::Relaxed);
            children.iter().filter_map(Weak::upgrade).for_each(|child| child.store(true, Ordering::Relaxed));
        }
    }

    /// Creates a token that is cancelled when this one is. Cancelling the child does not affect this token. A child
    /// cannot have children of its own that this token cancels.
    pub(crate) fn child(&self) -> CancelToken {
        let child = CancelToken::new();
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(&child.flag));
        child.flag.store(self.is_cancelled(), Ordering::Relaxed);
        drop(children);
        child
    }

    /// Whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Returns [`Error::Cancelled`] if cancellation was requested.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled("the run was cancelled")) } else { Ok(()) }
    }

    /// Returns the flag, which is true after cancellation. The evaluator and compiled code poll it.
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

    #[test]
    fn children_are_cancelled_with_their_parent_but_not_the_reverse() {
        let parent = CancelToken::new();
        let (early, own) = (parent.child(), parent.child());
        own.cancel();
        assert!(own.is_cancelled() && !parent.is_cancelled() && !early.is_cancelled());
        parent.cancel();
        assert!(early.is_cancelled() && parent.child().is_cancelled());
    }
}
