//! Caches that programs of a platform share for the lifetime of the process: machine code and autotuning.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use xla_service::CompileOptions;

use crate::autotune::cache::AutotuneCache;
use crate::ptx::in_process::InProcess;

/// Caches in memory and on disk, shared by programs with the same options about them.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Machine code that programs load.
    pub machine_code: InProcess,
    /// The fastest candidates.
    pub autotune: AutotuneCache,
}

impl Caches {
    /// Nothing is read before it is needed.
    pub fn new(options: &CompileOptions) -> Caches {
        Caches { machine_code: InProcess::new(options), autotune: AutotuneCache::new(options) }
    }
}

/// The folder, and whether candidates are measured.
type Key = (Option<PathBuf>, bool);

/// Caches by the options of programs.
#[derive(Debug, Default)]
pub(crate) struct AllCaches(Mutex<HashMap<Key, Arc<Caches>>>);

impl AllCaches {
    /// The caches of programs with those options.
    pub fn of(&self, options: &CompileOptions) -> Arc<Caches> {
        let key = (options.cache_dir.clone(), options.autotune);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(|| Arc::new(Caches::new(options))).clone()
    }
}
