//! Random programs have equal results in the evaluator, after the passes, and on the CPU.
//!
//! `XLA_TESTS_GRAPHS=10000` sets the number of programs of each family, `XLA_TESTS_SEED=5000` the first seed, and
//! `XLA_TESTS_ONE=movement:17` runs a single program. Failures are shrunk and kept as files for `tests/regressions` in
//! the folder `XLA_TESTS_KEEP`, even if the process crashed. Each family is a test, so that families run in parallel.
//! `cargo xtask fuzz` does this for any length of time.
#![expect(clippy::print_stdout, reason = "a test says how many programs it compared")]

use std::path::PathBuf;
use std::time::Duration;

use xla_tests::campaign::{Campaign, Finding};
use xla_tests::differential::Differential;
use xla_tests::generate::Family;
use xla_tests::program::Program;

/// Number of programs of each family: 3,300 in all.
const GRAPHS: u64 = 300;
/// Maximum number of failures that are shrunk.
const MOST_FAILURES: usize = 5;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<u64> {
    setting(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Returns the first seed of a family, and the number of programs.
fn seeds(family: Family) -> (u64, u64) {
    let Some(one) = setting("XLA_TESTS_ONE") else {
        return (number("XLA_TESTS_SEED").unwrap_or(0), number("XLA_TESTS_GRAPHS").unwrap_or(GRAPHS));
    };
    let (name, seed) = one.split_once(':').expect("XLA_TESTS_ONE is FAMILY:SEED");
    let of_family = Family::from_name(name).expect("XLA_TESTS_ONE names a family") == family;
    (seed.parse().expect("XLA_TESTS_ONE ends with a number"), u64::from(of_family))
}

fn check(family: Family) {
    let (first_seed, programs) = seeds(family);
    let keep = setting("XLA_TESTS_KEEP").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").to_string());
    let campaign = Campaign {
        families: vec![family],
        first_seed,
        programs: Some(programs),
        time: None,
        jobs: 1,
        worker: vec![env!("CARGO_BIN_EXE_xla-tests").into(), "worker".into()],
        keep: PathBuf::from(keep),
        most_failures: MOST_FAILURES,
        patience: Duration::from_secs(120),
    };
    let summary = campaign.run(&|_| {}).unwrap();
    for finding in &summary.findings {
        println!("{}", describe(finding));
    }
    println!("{}: {} programs, {} instructions", family.name(), summary.total(), summary.instructions);
    let seeds: Vec<u64> = summary.findings.iter().map(|finding| finding.seed).collect();
    assert!(seeds.is_empty(), "{} programs of seeds {seeds:?} fail", family.name());
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
