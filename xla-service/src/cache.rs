//! The compilation cache: executables by platform, module and options.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Module, Result};

use crate::executable::Executable;
use crate::fingerprint::Fingerprint;
use crate::options::CompileOptions;

/// Keeps executables, the most recently used ones. An ordinary value: clients may share one, or have their own.
///
/// The same program asked for by several threads at once is compiled once; the others wait for it. A compilation that
/// fails is not remembered.
#[derive(Debug)]
pub struct CompilationCache {
    capacity: usize,
    state: Mutex<CacheState>,
}

/// Hits and misses of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Programs found, or compiled by somebody else meanwhile.
    pub hits: u64,
    /// Programs compiled.
    pub misses: u64,
    /// Programs in the cache.
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

/// Locked while the program is being compiled; empty until then.
type Cell = Arc<Mutex<Option<Arc<dyn Executable>>>>;

#[derive(Debug)]
struct Entry {
    cell: Cell,
    last_used: u64,
}

impl CompilationCache {
    /// A cache of at most `capacity` programs; 0 keeps nothing.
    pub fn new(capacity: usize) -> CompilationCache {
        CompilationCache { capacity, state: Mutex::default() }
    }

    /// The program for that module and those options on that platform, from the cache or by compiling it.
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

    /// Hits and misses so far.
    pub fn stats(&self) -> CacheStats {
        let state = self.state();
        CacheStats { hits: state.hits, misses: state.misses, entries: state.entries.len() }
    }

    /// Forgets all programs. Those in use live on.
    pub fn clear(&self) {
        self.state().entries.clear();
    }

    /// The cell of that key, made if need be; the one used longest ago goes when there are too many.
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
    /// A cache of 64 programs.
    fn default() -> Self {
        CompilationCache::new(64)
    }
}
