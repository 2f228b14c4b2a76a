//! Compilation cache: executables keyed by platform, module and options.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Module, Result};

use crate::executable::Executable;
use crate::fingerprint::Fingerprint;
use crate::options::CompileOptions;

/// LRU cache of executables. It is an ordinary value: clients may share one or have their own.
///
/// If several threads request the same program at once, one of them compiles it and the others wait. Failed
/// compilations are not cached.
#[derive(Debug)]
pub struct CompilationCache {
    capacity: usize,
    state: Mutex<CacheState>,
}

/// Statistics of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Requests that found the program, including those that waited for another thread to compile it.
    pub hits: u64,
    /// Requests that compiled the program.
    pub misses: u64,
    /// Number of programs in the cache.
    pub entries: usize,
}

#[derive(Debug, Default)]
struct CacheState {
    entries: HashMap<CacheKey, Entry>,
    clock: u64,
    hits: u64,
    misses: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CacheKey {
    platform: String,
    module: Fingerprint,
    options: CompileOptions,
}

/// Slot of one program, locked while it is compiled and empty until then.
type Cell = Arc<Mutex<Option<Arc<dyn Executable>>>>;

#[derive(Debug)]
struct Entry {
    cell: Cell,
    last_used: u64,
}

impl CompilationCache {
    /// Creates a cache of at most `capacity` programs; with capacity 0 nothing is cached.
    pub fn new(capacity: usize) -> CompilationCache {
        CompilationCache { capacity, state: Mutex::default() }
    }

    /// Returns the program for this platform, module and options. Compiles it if it is not in the cache.
    pub fn get_or_compile(
        &self,
        platform: &str,
        module: &Module,
        options: &CompileOptions,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>>,
    ) -> Result<Arc<dyn Executable>> {
        if self.capacity == 0 {
            return compile();
        }
        let key =
            CacheKey { platform: platform.to_string(), module: Fingerprint::of(module), options: options.clone() };
        let cell = self.cell(key);
        let mut slot = cell.lock().unwrap_or_else(PoisonError::into_inner);
        let found = slot.clone();
        {
            let mut state = self.state();
            if found.is_some() { state.hits += 1 } else { state.misses += 1 }
        }
        if let Some(executable) = found {
            return Ok(executable);
        }
        let executable = compile()?;
        *slot = Some(executable.clone());
        Ok(executable)
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> CacheStats {
        let state = self.state();
        CacheStats { hits: state.hits, misses: state.misses, entries: state.entries.len() }
    }

    /// Removes all programs from the cache. Programs in use stay alive.
    pub fn clear(&self) {
        self.state().entries.clear();
    }

    /// Returns the cell of a key, inserted if it is absent. Evicts the least recently used entry if the cache is full.
    fn cell(&self, key: CacheKey) -> Cell {
        let mut state = self.state();
        state.clock += 1;
        let last_used = state.clock;
        let entry = state.entries.entry(key).or_insert_with(|| Entry { cell: Cell::default(), last_used });
        entry.last_used = last_used;
        let cell = entry.cell.clone();
        if state.entries.len() > self.capacity {
            let oldest = state.entries.iter().min_by_key(|(_, e)| e.last_used).map(|(key, _)| key.clone());
            oldest.and_then(|key| state.entries.remove(&key));
        }
        cell
    }

    fn state(&self) -> std::sync::MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CompilationCache {
    /// Creates a cache of 64 programs.
    fn default() -> Self {
        CompilationCache::new(64)
    }
}
