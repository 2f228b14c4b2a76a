//! Programs in `tests/regressions` that once failed, each named after its bug, do not fail again.
//!
//! The differential test prints such programs when it finds a failure; see [`xla_tests::program`] for the format.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use xla::CompileOptions;
use xla_tests::differential::Differential;
use xla_tests::program::Program;

#[test]
fn what_was_mended_stays_so() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "hlo"));
    paths.sort();
    assert!(!paths.is_empty());
    let registry = xla::registry();
    let platforms = [1, 2].map(|threads| {
        let options = CompileOptions { threads: NonZeroUsize::new(threads), ..CompileOptions::default() };
        Differential::new(&registry, "cpu", options).unwrap()
    });
    let mut failures = Vec::new();
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy();
        let text = std::fs::read_to_string(path).unwrap();
        let program = Program::from_text(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = Program::from_text(&program.to_text()).unwrap_or_else(|error| panic!("{name}, written: {error}"));
        assert_eq!(again.arguments, program.arguments, "{name}");
        for platform in &platforms {
            let failure = platform.failure(&program).unwrap_or_else(|error| panic!("{name}: {error}"));
            failures.extend(failure.map(|failure| format!("{name}: {failure:?}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
