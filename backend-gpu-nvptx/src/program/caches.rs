//! What programs of a platform share as long as the process lasts: machine code, and which ways are the fastest.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use xla_service::CompileOptions;

use crate::autotune::cache::AutotuneCache;
use crate::ptx::in_process::InProcess;

/// What was found out already, or is on disk; for programs with the same options about it.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Machine code of what programs load.
    pub machine_code: InProcess,
    /// Which ways are the fastest.
    pub autotune: AutotuneCache,
}

impl Caches {
    /// Nothing is read before it is needed.
    pub fn new(options: &CompileOptions) -> Caches {
        Caches { machine_code: InProcess::new(options), autotune: AutotuneCache::new(options) }
    }
}

/// The folder, and whether ways are measured.
type Key = (Option<PathBuf>, bool);

/// What programs share, by what their options say.
#[derive(Debug, Default)]
pub(crate) struct AllCaches(Mutex<HashMap<Key, Arc<Caches>>>);

impl AllCaches {
    /// What programs with those options share.
    pub fn of(&self, options: &CompileOptions) -> Arc<Caches> {
        let key = (options.cache_dir.clone(), options.autotune);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(|| Arc::new(Caches::new(options))).clone()
    }
}
