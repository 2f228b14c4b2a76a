//! Key-value store that the processes of a job share.

use std::fmt;
use std::time::Duration;

use xla_hlo::{Error, Result, ResultExt};

/// Key-value store that all processes of a job share, such as the coordination service of JAX.
///
/// # Contract
///
/// - All methods may be called from any thread.
/// - A value that [`put`](KeyValueStore::put) has stored is visible to later calls in all processes.
/// - A key is written once; `put` may fail for a key that exists.
pub trait KeyValueStore: fmt::Debug + Send + Sync {
    /// Returns the value of a key, and waits for it up to `timeout`.
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>>;

    /// Returns the value of a key; `None` if the key does not exist.
    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// Stores the value of a key.
    fn put(&self, key: &str, value: &[u8]) -> Result<()>;
}

/// Stores a value. A key that exists with the same value is no error: a restarted process publishes its values again.
/// [`Error::FailedPrecondition`] if it exists with another value.
pub fn publish(store: &dyn KeyValueStore, key: &str, value: &[u8]) -> Result<()> {
    let is_published = || match store.try_get(key)? {
        None => Ok(false),
        Some(found) if found == value => Ok(true),
        Some(_) => Err(Error::failed_precondition(format!(
            "the key-value store has another value for {key}: a process with the same number has published other \
             devices; start all processes again"
        ))),
    };
    if is_published()? {
        return Ok(());
    }
    match store.put(key, value) {
        Ok(()) => Ok(()),
        // Another process may have stored the key in the meantime.
        Err(error) if !is_published()? => Err(error).context(|| format!("the key-value store, key {key}")),
        Err(_) => Ok(()),
    }
}
