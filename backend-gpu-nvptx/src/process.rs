//! What programs of a platform share as long as the process lasts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use xla_service::CompileOptions;

use crate::choices::Choices;
use crate::ptx::in_process::InProcess;

/// What was found out already, or is on disk; for programs with the same options about it.
#[derive(Debug)]
pub(crate) struct Process {
    /// Machine code of what programs load.
    pub machine_code: InProcess,
    /// Which ways are the fastest.
    pub choices: Choices,
}

impl Process {
    /// Nothing is read before it is needed.
    pub fn new(options: &CompileOptions) -> Process {
        Process { machine_code: InProcess::new(options), choices: Choices::new(options) }
    }
}

/// The folder, and whether ways are measured.
type Key = (Option<PathBuf>, bool);

/// What programs share, by what their options say.
#[derive(Debug, Default)]
pub(crate) struct Processes(Mutex<HashMap<Key, Arc<Process>>>);

impl Processes {
    /// What programs with those options share.
    pub fn of(&self, options: &CompileOptions) -> Arc<Process> {
        let key = (options.cache_dir.clone(), options.autotune);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(|| Arc::new(Process::new(options))).clone()
    }
}
