//! Tests of the standard pipeline, and of each pass alone, on every program of the corpus, if it exists: programs stay
//! valid, and their results do not change.
//!
//! The corpus is searched in `XLA_CORPUS`, then in `shared/corpus` next to the repository.

use std::path::{Path, PathBuf};
use std::{env, fs};

use xla_hlo::text::parse_module;
use xla_hlo::{Error, Module, Opcode, Result, verify};
use xla_passes::{PassContext, PassOptions, Pipeline, TargetProfile, registry, stages};

use crate::support::{difference, evaluate};

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

/// Outcome of a program.
#[derive(PartialEq)]
enum Outcome {
    Same,
    /// The program needs an operation that is not supported yet, or runs too long for a test.
    Skipped,
    Failed(String),
}

fn valid_module(text: &str) -> Option<Module> {
    parse_module(text).ok().filter(|module| verify::check(module).is_ok())
}

/// Returns a target that lacks everything that passes can expand, except for functions whose rounding errors many
/// layers amplify.
fn poor() -> TargetProfile {
    let mut poor = TargetProfile::poor();
    poor.lacks.retain(|opcode| !matches!(opcode, Opcode::Rsqrt | Opcode::Tanh));
    poor
}

fn check(text: &str, pipeline: &Pipeline, profile: &TargetProfile) -> Outcome {
    let Some(before) = valid_module(text) else { return Outcome::Skipped };
    let mut after = before.clone();
    match run(pipeline, profile, &mut after) {
        Ok(true) => {}
        // Some passes require others first.
        Ok(false) | Err(Error::FailedPrecondition(_)) => return Outcome::Skipped,
        Err(error) => return Outcome::Failed(error.to_string()),
    }
    let old = match evaluate(&before, 1, false, 20_000) {
        Ok(value) => value,
        // Some programs reject generated inputs, such as sizes that do not fit.
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

/// Runs a pipeline whose fixed-point groups must reach a fixpoint; returns whether it changed the module.
fn run(pipeline: &Pipeline, profile: &TargetProfile, module: &mut Module) -> Result<bool> {
    let context = PassContext::new(profile).with_options(PassOptions { verify: true, ..PassOptions::default() });
    let report = pipeline.run(module, &context)?;
    match report.unfinished.is_empty() {
        true => Ok(report.is_changed()),
        false => Err(Error::internal(format!("does not come to rest: {:?}", report.unfinished))),
    }
}

#[test]
fn programs_keep_their_meaning() {
    for profile in [TargetProfile::able(), poor()] {
        let same = compare(&stages::standard(&profile), &profile);
        assert!(same.is_none_or(|same| same > 300), "only {same:?} programs could be compared");
    }
}

#[test]
fn programs_keep_their_meaning_in_each_pass() {
    let alone = |name| Pipeline::fixed_point("alone", 12).boxed(registry::pass(name).expect("it is listed"));
    let rewritten = registry::list().filter_map(|(name, _)| compare(&alone(name), &poor())).sum::<usize>();
    assert!(corpus().is_none() || rewritten > 1000, "passes changed only {rewritten} programs that could be compared");
}

/// Compares the results of all programs of the corpus before and after passes; returns the number of compared programs,
/// or `None` without a corpus.
fn compare(pipeline: &Pipeline, profile: &TargetProfile) -> Option<usize> {
    let corpus = corpus()?;
    let mut failures = Vec::new();
    let mut same = 0;
    for program in SUITES.iter().flat_map(|suite| programs(&corpus.join(suite))) {
        let text = fs::read_to_string(&program).expect("a readable program");
        match check(&text, pipeline, profile) {
            Outcome::Same => same += 1,
            Outcome::Skipped => {}
            Outcome::Failed(why) => failures.push(format!("{}: {why}", program.display())),
        }
    }
    assert!(failures.is_empty(), "{} programs changed, {same} did not:\n{}", failures.len(), failures.join("\n"));
    Some(same)
}

const SUITES: [&str; 13] = [
    "elementwise",
    "shapes",
    "reductions",
    "dot",
    "control_flow",
    "gather_scatter",
    "complex",
    "models",
    "hlo_text",
    "linalg",
    "sort",
    "conv",
    "fft",
];
