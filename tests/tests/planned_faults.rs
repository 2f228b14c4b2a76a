//! Conformance in worker processes, on a simulated GPU: a kernel that loses the device, or one that never ends, fails
//! only the case that launched it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Filter of cases whose kernels have one name; they have more launches than are planned to fail.
const FILTER: &str = "2/add/s";

/// Returns a folder with the simulated driver under its name; Cargo has built it as a dependency of this test.
fn driver(scratch: &Path) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let library = [deps.clone(), deps.join("..")].map(|folder| folder.join("libsimulated_gpu.so"));
    let library = library.iter().find(|path| path.exists()).expect("the simulated driver is built with this test");
    let folder = scratch.join("driver");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(library, folder.join("libcuda.so.1")).unwrap();
    folder
}

/// Runs the cases on platform `gpu`, with planned failures, in two processes.
fn conformance(scratch: &Path, plans: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xla-tests"));
    command.args(["conformance", "gpu", "--quick", "--level", "2", "--filter", FILTER]).args(words);
    command.env("LD_LIBRARY_PATH", driver(scratch)).env("SIMULATED_GPU", plans);
    command.output().unwrap()
}

/// Returns the identifier, kind of outcome and message of each line of a log.
fn outcomes(log: &Path) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(log).unwrap();
    let outcome = |line: &str| {
        let result: Value = serde_json::from_str(line).unwrap();
        let id = result["id"].as_str().unwrap().to_string();
        match &result["outcome"] {
            Value::String(kind) => (id, kind.clone(), String::new()),
            Value::Object(kinds) => {
                let (kind, message) = kinds.iter().next().unwrap();
                (id, kind.clone(), message.to_string())
            }
            other => panic!("{id}: {other}"),
        }
    };
    text.lines().map(outcome).collect()
}

#[test]
fn a_lost_device_and_an_endless_kernel_cost_a_case_each() {
    let scratch = std::env::temp_dir().join(format!("xla-planned-faults-{}", std::process::id()));
    let marks = scratch.join("marks");
    std::fs::create_dir_all(&marks).unwrap();
    let log = scratch.join("log.jsonl");
    let plans = format!("fault=r:2,endless=r:3,once={}", marks.display());
    let words = ["--workers", "2", "--patience", "10", "--log", log.to_str().unwrap()];
    let done = conformance(&scratch, &plans, &words);
    let (text, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let outcomes = outcomes(&log);
    std::fs::remove_dir_all(&scratch).unwrap();
    let of = |kind: &str| -> Vec<_> { outcomes.iter().filter(|(_, other, _)| other == kind).collect() };
    assert_eq!(done.status.code(), Some(1), "{text}{said}");
    let ([(lost, _, why)], [(hung, _, _)]) = (&of("Lost")[..], &of("Hung")[..]) else { panic!("{outcomes:?}") };
    assert!(why.contains("illegal address, as planned") && why.contains("lost the device"), "{why}");
    assert_eq!(of("Passed").len() + 2, outcomes.len());
    assert!(outcomes.len() > 4 && text.contains(&format!("FAILED {lost}")) && text.contains(&format!("FAILED {hung}")));
    assert!(text.contains("1 lost the device or died, 1 did not end"), "{text}");
}
