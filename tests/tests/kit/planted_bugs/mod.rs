//! Tests of the suite: it finds planted bugs, and its rules about declared failures hold.

mod device;

use std::time::Duration;

use xla::PlatformRegistry;

use xla_tests::conformance::{Expected, Level, Outcome, Report, Shard, Suite};

use device::Bug;

fn registry(bug: Bug) -> PlatformRegistry {
    let mut registry = PlatformRegistry::new();
    registry.register(device::platform(bug));
    registry
}

fn suite(bug: Bug, levels: &[Level], filter: &str) -> Suite {
    Suite::new(&registry(bug), "bench").levels(levels).filter(filter).quick()
}

fn run(bug: Bug, level: Level, filter: &str) -> Report {
    suite(bug, &[level], filter).run(&mut ()).unwrap()
}

/// Returns the messages of failing cases.
fn messages(report: &Report) -> String {
    let failures = report.failures().map(|(id, message)| format!("{id}: {message}\n"));
    failures.collect()
}

/// Asserts that the suite fails with this bug and message, and passes without the bug.
#[track_caller]
fn assert_found(bug: Bug, level: Level, filter: &str, words: &str) {
    let right = run(Bug::None, level, filter);
    assert!(!right.results.is_empty() && right.passed(), "{}", right.text());
    let wrong = run(bug, level, filter);
    assert!(!wrong.passed());
    assert!(messages(&wrong).contains(words), "{}", wrong.text());
}

#[test]
fn a_device_without_bugs_passes() {
    let report = suite(Bug::None, &[Level::Registration, Level::Device], "").run(&mut ()).unwrap();
    assert!(report.passed(), "{}", report.text());
    assert!(report.results.len() > 50, "{}", report.results.len());
}

#[test]
fn leaks_are_found() {
    assert_found(Bug::Leaks, Level::Device, "memory/accounting", "memory leaks");
    assert_found(Bug::Leaks, Level::Resilience, "endurance/compilations/softmax", "memory leaks");
}

#[test]
fn a_written_argument_is_found() {
    assert_found(Bug::WritesArgument, Level::Programs, "fusion_of_a_chain/shared", "wrote its argument 0");
}

#[test]
fn lost_errors_are_found() {
    assert_found(Bug::LosesErrors, Level::Resilience, "out-of-memory/softmax", "the error was lost");
}

#[test]
fn a_wrong_operation_is_found_and_blamed() {
    assert_found(Bug::WrongCode, Level::Operations, "2/floor/f32", "the platform's code");
    assert_found(Bug::WrongPasses, Level::Operations, "2/floor/f32", "the passes changed it");
}

#[test]
fn a_wrong_copy_is_found() {
    assert_found(Bug::CopiesForward, Level::Device, "copies/overlapping", "to offset");
}

#[test]
fn panics_are_failures() {
    assert_found(Bug::Panics, Level::Device, "copies/outside", "it panics: ");
}

#[test]
fn cases_that_do_not_end_are_failures() {
    let suite = suite(Bug::Hangs, &[Level::Device], "streams/synchronize").patience(Duration::from_millis(300));
    let report = suite.run(&mut ()).unwrap();
    assert!(messages(&report).contains("it has not ended after"), "{}", report.text());
}

#[test]
fn declared_failures_are_no_failures() {
    let declared = |text| {
        let expected = Expected::parse(text).unwrap();
        suite(Bug::WrongCode, &[Level::Operations], "2/floor/").expected(expected).run(&mut ()).unwrap()
    };
    let report = declared("2/floor/* : no floor yet");
    assert!(report.passed(), "{}", report.text());
    let table = report.matrix.as_ref().unwrap();
    let expected =
        table.cells().filter(|(.., status)| matches!(status, xla_tests::coverage::Status::Expected(_))).count();
    let failed = report.results.iter().filter(|result| matches!(result.outcome, Outcome::Expected { .. })).count();
    assert!(expected > 5 && expected == failed);
    assert!(report.html().contains("no floor yet") && report.json().contains("no floor yet"));
}

#[test]
fn stale_declarations_are_failures() {
    let declared = |text| {
        let expected = Expected::parse(text).unwrap();
        suite(Bug::None, &[Level::Operations], "2/floor/").expected(expected).run(&mut ()).unwrap().text()
    };
    let text = declared("2/floor/f32 : no floor yet");
    assert!(text.contains("FAILED 2/floor/f32\n    begins to pass: remove its line"), "{text}");
    let text = declared("2/floor/* : no floor yet");
    assert!(text.contains("line 1 of the expected failures, 2/floor/*: all"), "{text}");
    let text = declared("\n2/floor/f33 : no such type");
    assert!(text.contains("line 2 of the expected failures, 2/floor/f33, fits no case"), "{text}");
    let text = declared("4/models/* : another level");
    assert!(text.contains("bench passes"), "{text}");
}

#[test]
fn identifiers_are_unique_and_begin_with_their_level() {
    let cases = |levels: &[Level]| suite(Bug::None, levels, "").cases();
    let all = cases(&Level::ALL);
    let ids: std::collections::BTreeSet<&str> = all.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), all.len());
    for level in Level::ALL {
        let begin = format!("{}/", level.number());
        assert!(cases(&[level]).iter().all(|case| case.id.starts_with(&begin)), "{begin}");
    }
    assert!(ids.contains("2/add/bf16") && ids.contains("4/models/gpt_forward"));
}

#[test]
fn each_case_is_in_one_shard() {
    let shards = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>().unwrap());
    let cases = suite(Bug::None, &[Level::Operations], "").cases();
    let mut counts = [0; 3];
    for case in &cases {
        let having = [0, 1, 2].into_iter().filter(|&i| shards[i].has(&case.id));
        let having: Vec<usize> = having.collect();
        assert_eq!(having.len(), 1, "{}", case.id);
        counts[having[0]] += 1;
    }
    assert!(counts.iter().all(|&count| count > cases.len() / 4), "{counts:?}");
    let selected = suite(Bug::None, &[Level::Operations], "2/add/").shard(shards[0]).cases();
    assert!(selected.iter().all(|case| shards[0].has(&case.id) && case.id.contains("2/add/")));
    let all = cases.iter().filter(|case| case.id.contains("2/add/")).count();
    assert!((1..all).contains(&selected.len()), "{} of {all}", selected.len());
    for text in ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3"] {
        assert!(text.parse::<Shard>().unwrap_err().contains("K/N"), "{text}");
    }
}

#[test]
fn an_unknown_platform_is_an_error() {
    let error = Suite::new(&registry(Bug::None), "abacus").run(&mut ()).unwrap_err();
    assert!(error.message().contains("registered: bench"), "{error}");
}

#[test]
fn the_evaluator_behind_passes_is_a_platform() {
    let run =
        |platform| Suite::new(&registry(Bug::WrongPasses), platform).levels(&[Level::Operations]).filter("2/floor/f32");
    let report = run("optimized:bench").run(&mut ()).unwrap();
    assert!(!report.passed() && report.platform == "optimized:bench", "{}", report.text());
    assert!(run("abacus:bench").run(&mut ()).is_err());
    let levels = [Level::Registration, Level::Device];
    let report = Suite::new(&registry(Bug::None), "optimized:bench").levels(&levels).quick().run(&mut ()).unwrap();
    assert!(report.passed(), "{}", report.text());
}
