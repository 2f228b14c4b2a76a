//! Caches that programs of a platform share for the lifetime of the process: cubins and autotuning.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use xla_service::CompileOptions;

use crate::autotune::cache::AutotuneCache;
use crate::ptx::in_process::InProcess;

/// Caches in memory and on disk, shared by programs with equal cache options.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Cubins that programs load.
    pub machine_code: InProcess,
    /// Fastest candidates.
    pub autotune: AutotuneCache,
}

impl Caches {
    /// Creates caches that read their files on first use.
    pub fn new(options: &CompileOptions) -> Caches {
        Caches { machine_code: InProcess::new(options), autotune: AutotuneCache::new(options) }
    }
}

/// Cache folder, and whether candidates are measured.
type Key = (Option<PathBuf>, bool);

/// Caches by the options of programs.
#[derive(Debug, Default)]
pub(crate) struct AllCaches(Mutex<HashMap<Key, Arc<Caches>>>);

impl AllCaches {
    /// Returns the caches of programs with these options.
    pub fn of(&self, options: &CompileOptions) -> Arc<Caches> {
        let key = (options.cache_dir.clone(), options.autotune);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(|| Arc::new(Caches::new(options))).clone()
    }
}
