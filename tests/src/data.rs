//! Finds the programs of the suites and their expected results.

use std::path::PathBuf;

/// The folder with `corpus/suites`, `conformance/programs` and `regressions`: beside the command, if it was carried to
/// another machine with them, else that of the repository.
pub fn folder() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|command| Some(command.parent()?.join("tests")));
    let carried = beside.filter(|folder| folder.join("corpus/suites").is_dir());
    carried.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")))
}
