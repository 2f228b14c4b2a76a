//! Key-value store in the memory of one process.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::store::KeyValueStore;

/// Key-value store for clients of one process, which act as the processes of a job: for tests and simulations.
#[derive(Debug, Default)]
pub struct InMemoryStore {
    values: Mutex<HashMap<String, Vec<u8>>>,
    changed: Condvar,
}

impl InMemoryStore {
    fn values(&self) -> MutexGuard<'_, HashMap<String, Vec<u8>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyValueStore for InMemoryStore {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let start = Instant::now();
        let mut values = self.values();
        loop {
            if let Some(value) = values.get(key) {
                return Ok(value.clone());
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                let message = format!("no process has stored the key {key} within {} s", timeout.as_secs_f32());
                return Err(Error::failed_precondition(message));
            }
            values = self.changed.wait_timeout(values, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.values().get(key).cloned())
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let mut values = self.values();
        if values.contains_key(key) {
            return Err(Error::failed_precondition(format!("the key {key} exists")));
        }
        values.insert(key.to_string(), value.to_vec());
        self.changed.notify_all();
        Ok(())
    }
}
