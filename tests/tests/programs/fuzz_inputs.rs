//! Inputs that a fuzzer found, in `tests/fuzz_inputs/TARGET`, named after the bug, do not fail again.

#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use std::panic::catch_unwind;
use std::path::PathBuf;

fn check(target: &str, run: fn(&[u8])) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz_inputs").join(target);
    let mut failures = Vec::new();
    // A target without findings has no folder.
    for file in std::fs::read_dir(folder).into_iter().flatten() {
        let path = file.unwrap().path();
        let input = std::fs::read(&path).unwrap();
        if catch_unwind(|| run(&input)).is_err() {
            failures.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn text() {
    check("text", targets::text);
}

#[test]
fn proto() {
    check("proto", targets::proto);
}

#[test]
fn passes() {
    check("passes", targets::passes);
}

#[test]
fn npz() {
    check("npz", targets::npz);
}
