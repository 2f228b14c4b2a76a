//! Location of the programs of the suites and their expected results.

use std::path::PathBuf;

/// Returns the folder with `corpus/suites`, `conformance/programs` and `regressions`: `tests` next to the executable,
/// if it was copied to another machine with it, otherwise the repository's.
pub fn folder() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|command| Some(command.parent()?.join("tests")));
    let carried = beside.filter(|folder| folder.join("corpus/suites").is_dir());
    carried.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")))
}
