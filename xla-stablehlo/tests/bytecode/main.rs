//! Tests of readers of programs, artifacts and text: programs of JAX are read; a damaged or hostile file is an error.

mod book;
mod dialects;
mod dynamic;
mod forms;
mod fuzz_inputs;
mod hostile;
mod lower;
mod lowering;
mod malformed;
mod newer;
mod operations;
mod oracle;
mod outline;
mod programs;
mod reader;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files of a folder below `tests/data`, by their names without the extension.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let entries = fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "mlirbc")).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().replace(".mlirbc", "");
    paths.iter().map(|path| (name(path), fs::read(path).expect("a readable file"))).collect()
}
