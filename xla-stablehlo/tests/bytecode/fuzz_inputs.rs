//! Inputs that a fuzzer found, in `tests/fuzz_inputs/TARGET`, named after the bug, do not fail again.

#[path = "../../../fuzz/src/container/mod.rs"]
mod container;
#[path = "../../../fuzz/src/stablehlo.rs"]
mod targets;

use std::panic::catch_unwind;
use std::path::Path;

use crate::files;

fn check(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz_inputs").join(target);
    let mut failures = Vec::new();
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("the folder") {
        let path = file.expect("an entry").path();
        let input = std::fs::read(&path).expect("a readable file");
        count += 1;
        if catch_unwind(|| run(&input)).is_err() {
            failures.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    assert!(count > 0 && failures.is_empty(), "{failures:?} of {count}");
}

#[test]
fn bytecode() {
    check("bytecode", targets::bytecode);
}

#[test]
fn mlir() {
    check("mlir", targets::mlir);
}

#[test]
fn the_mutator_takes_files_apart_and_puts_them_together() {
    for (name, bytes) in files("").into_iter().chain(files("targets")) {
        let file = container::File::decode(&bytes).unwrap_or_else(|| panic!("{name} is not decoded"));
        let again = xla_stablehlo::bytecode::read(&file.encode()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let module = xla_stablehlo::bytecode::read(&bytes).expect("a module");
        assert_eq!(again.to_string(), module.to_string(), "{name}");
    }
}

#[test]
fn mutated_files_do_no_harm() {
    for (name, bytes) in files("targets") {
        let mut kept = 0;
        for seed in 0..100 {
            let mutated = container::mutate(&bytes, seed).unwrap_or_else(|| panic!("{name} is not decoded"));
            targets::bytecode(&mutated);
            kept += usize::from(xla_stablehlo::bytecode::read(&mutated).is_ok());
        }
        assert!(kept > 0, "{name}: every mutation breaks the container");
    }
}
