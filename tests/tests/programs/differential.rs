//! Random programs have equal results in the evaluator, after the passes, and on the CPU, the last ones in the
//! sanitizing mode.
//!
//! `XLA_TESTS_GRAPHS=10000` sets the number of programs of each family, `XLA_TESTS_SEED=5000` the first seed, and
//! `XLA_TESTS_ONE=movement:17` runs a single program. Failures are shrunk and kept as files for `tests/regressions` in
//! the folder `XLA_TESTS_KEEP`, even if the process crashed. Each family is a test, so that families run in parallel.
//! `cargo xtask fuzz` does this for any length of time.
#![expect(clippy::print_stdout, reason = "a test says how many programs it compared")]

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use xla_tests::campaign::{Campaign, Finding};
use xla_tests::differential::Differential;
use xla_tests::generate::Family;
use xla_tests::program::Program;

/// Number of programs of each family.
const GRAPHS: u64 = 120;
/// Number of further programs of each family for the sanitizing mode.
const SANITIZED: u64 = 40;
/// Maximum number of failures that are shrunk.
const MOST_FAILURES: usize = 5;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<u64> {
    setting(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Returns the seeds of a family that run without and with the sanitizing mode.
fn seeds(family: Family) -> [Range<u64>; 2] {
    let Some(one) = setting("XLA_TESTS_ONE") else {
        let first = number("XLA_TESTS_SEED").unwrap_or(0);
        let last = first + number("XLA_TESTS_GRAPHS").unwrap_or(GRAPHS);
        return [first..last, last..last + SANITIZED];
    };
    let (name, seed) = one.split_once(':').expect("XLA_TESTS_ONE is FAMILY:SEED");
    if Family::from_name(name).expect("XLA_TESTS_ONE names a family") != family {
        return [0..0, 0..0];
    }
    let seed: u64 = seed.parse().expect("XLA_TESTS_ONE ends with a number");
    [seed..seed + 1, seed..seed + 1]
}

fn check(family: Family) {
    let [plain, sanitized] = seeds(family);
    let failing = [findings(family, plain, &[]), findings(family, sanitized, &["--sanitize"])].concat();
    assert!(failing.is_empty(), "programs of {} fail, of seeds {failing:?}", family.name());
}

/// Checks programs with further options of the worker, and returns the seeds of those that fail.
fn findings(family: Family, seeds: Range<u64>, options: &[&str]) -> Vec<u64> {
    let keep = setting("XLA_TESTS_KEEP").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").to_string());
    let worker = [&[env!("CARGO_BIN_EXE_xla-tests"), "worker"], options].concat();
    let campaign = Campaign {
        families: vec![family],
        first_seed: seeds.start,
        programs: Some(seeds.end - seeds.start),
        time: None,
        jobs: 1,
        worker: worker.into_iter().map(String::from).collect(),
        keep: PathBuf::from(keep),
        most_failures: MOST_FAILURES,
        patience: Duration::from_secs(120),
    };
    let summary = campaign.run(&|_| {}).unwrap();
    for finding in &summary.findings {
        println!("{options:?} {}", describe(finding));
    }
    let name = family.name();
    println!("{name} {options:?}: {} programs, {} instructions", summary.total(), summary.instructions);
    summary.findings.iter().map(|finding| finding.seed).collect()
}

/// Describes a finding, with its module after the passes.
fn describe(finding: &Finding) -> String {
    let optimized = || {
        let cpu = Differential::new(&xla::registry(), "cpu", xla::CompileOptions::default())?;
        cpu.optimized(&Program::from_text(&finding.text)?)
    };
    let optimized = optimized().unwrap_or_else(|error| error.to_string());
    format!(
        "XLA_TESTS_ONE={}:{} fails ({:?}): {}\n{}\nafter passes:\n{optimized}\nkept as {}",
        finding.family.name(),
        finding.seed,
        finding.failure.kind,
        finding.failure.message,
        finding.text,
        finding.path.display(),
    )
}

#[test]
fn elementwise() {
    check(Family::Elementwise);
}

#[test]
fn movement() {
    check(Family::Movement);
}

#[test]
fn reduction() {
    check(Family::Reduction);
}

#[test]
fn window() {
    check(Family::Window);
}

#[test]
fn dot() {
    check(Family::Dot);
}

#[test]
fn indexing() {
    check(Family::Indexing);
}

#[test]
fn control() {
    check(Family::Control);
}

#[test]
fn mixed() {
    check(Family::Mixed);
}

#[test]
fn large() {
    check(Family::Large);
}

#[test]
fn rare() {
    check(Family::Rare);
}

#[test]
fn idioms() {
    check(Family::Idioms);
}

/// A worker that crashes is a finding, kept as a file, and the campaign continues.
#[test]
fn a_dying_worker_is_survived() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dying");
    let campaign = Campaign {
        families: vec![Family::Movement],
        first_seed: 0,
        programs: Some(3),
        time: None,
        jobs: 1,
        worker: ["sh", "-c", "read request; echo 'it hurts' >&2; kill -SEGV $$"].map(String::from).to_vec(),
        keep: folder,
        most_failures: 2,
        patience: Duration::from_secs(20),
    };
    let summary = campaign.run(&|_| {}).unwrap();
    assert_eq!(summary.findings.len(), 2);
    for finding in &summary.findings {
        assert_eq!(finding.failure.kind, xla_tests::differential::FailureKind::Crash);
        assert!(finding.failure.message.contains("it hurts"), "{}", finding.failure.message);
        assert!(finding.path.exists() && Program::from_text(&finding.text).is_ok());
    }
}
