//! The standard pipeline on every program of the corpus, where it is there: still valid, still the same meaning.
//!
//! The corpus is looked for in `XLA_CORPUS`, then in `shared/corpus` beside the repository.

#[expect(dead_code, reason = "the cases of the file tests are not used here")]
mod support;

use std::path::{Path, PathBuf};
use std::{env, fs};

use support::{difference, evaluate};
use xla_hlo::text::parse_module;
use xla_hlo::{Error, Module, verify};
use xla_passes::{FusionProfile, PassContext, PassOptions, TargetProfile, stages};

fn corpus() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let path = env::var_os("XLA_CORPUS").map_or(beside, PathBuf::from);
    path.is_dir().then_some(path)
}

fn programs(suite: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(suite) else { return Vec::new() };
    let mut programs: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path().join("module.hlo"))).collect();
    programs.retain(|p| p.is_file());
    programs.sort();
    programs
}

/// What came of a program.
#[derive(PartialEq)]
enum Outcome {
    Same,
    /// It needs an operation that is not there yet, or runs too long for a test.
    Skipped,
    Failed(String),
}

fn valid_module(text: &str) -> Option<Module> {
    parse_module(text).ok().filter(|module| verify::check(module).is_ok())
}

/// A target that can do everything that passes know of.
fn able() -> TargetProfile {
    let fusion =
        FusionProfile { row_kernels: true, multi_output: true, reduce_epilogue: true, ..FusionProfile::loops() };
    TargetProfile { vector_bytes: 64, threads: 8, fusion, ..TargetProfile::generic() }
}

fn check(text: &str) -> Outcome {
    let Some(before) = valid_module(text) else { return Outcome::Skipped };
    let profile = able();
    let options = PassOptions { verify: true, ..PassOptions::default() };
    let cx = PassContext::new(&profile).with_options(options);
    let mut after = before.clone();
    match stages::standard(&profile).run(&mut after, &cx) {
        Ok(report) if report.unfinished.is_empty() => {}
        Ok(report) => return Outcome::Failed(format!("does not come to rest: {:?}", report.unfinished)),
        Err(error) => return Outcome::Failed(error.to_string()),
    }
    let old = match evaluate(&before, 1, false, 20_000) {
        Ok(value) => value,
        // Some programs refuse made-up inputs, such as sizes that do not fit.
        Err(Error::ResourceExhausted(_) | Error::Unimplemented(_) | Error::InvalidArgument(_)) => {
            return Outcome::Skipped;
        }
        Err(error) => return Outcome::Failed(format!("before: {error}")),
    };
    match evaluate(&after, 1, false, 200_000) {
        Ok(new) => difference(&old, &new, true).map_or(Outcome::Same, Outcome::Failed),
        Err(error) => Outcome::Failed(format!("after: {error}")),
    }
}

#[test]
fn programs_keep_their_meaning() {
    let Some(corpus) = corpus() else { return };
    let suites = [
        "elementwise",
        "shapes",
        "reductions",
        "dot",
        "control_flow",
        "gather_scatter",
        "complex",
        "models",
        "hlo_text",
    ];
    let mut failures = Vec::new();
    let mut same = 0;
    for program in suites.iter().flat_map(|suite| programs(&corpus.join(suite))) {
        let text = fs::read_to_string(&program).expect("a readable program");
        match check(&text) {
            Outcome::Same => same += 1,
            Outcome::Skipped => {}
            Outcome::Failed(why) => failures.push(format!("{}: {why}", program.display())),
        }
    }
    assert!(failures.is_empty(), "{} programs changed, {same} did not:\n{}", failures.len(), failures.join("\n"));
    assert!(same > 300, "only {same} programs could be compared");
}
