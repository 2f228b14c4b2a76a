//! Temporary files of the process, registered by name so that an aborting process can remove them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempPath;

static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Temporary file, removed when dropped or by [`remove_temporaries`].
#[derive(Debug)]
pub(crate) struct Temporary(Option<TempPath>);

impl Temporary {
    /// Takes ownership of a temporary file.
    pub fn new(path: TempPath) -> Temporary {
        NAMES.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
        Temporary(Some(path))
    }

    /// Renames the file to its final name, replacing an existing file.
    pub fn persist(mut self, name: &Path) -> io::Result<()> {
        let Some(path) = self.0.take() else { return Ok(()) };
        forget(&path);
        path.persist(name).map_err(|error| error.error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            forget(path);
        }
    }
}

fn forget(path: &Path) {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).retain(|name| name != path);
}

/// Removes the temporary files of this process without allocating memory, for a process that ends because memory is
/// exhausted. Skips them if another thread holds the list's lock.
pub fn remove_temporaries() {
    let Ok(names) = NAMES.try_lock() else { return };
    for name in names.iter() {
        // The process is ending; failures cannot be reported.
        let _ = fs::remove_file(name);
    }
}
