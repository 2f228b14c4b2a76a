//! Tests of the programs of the corpus, if it exists: through the standard pipeline, and run in their buffers.
//!
//! The corpus is searched in `XLA_CORPUS`, then in `shared/corpus` next to the repository.

use std::path::{Path, PathBuf};
use std::{env, fs};

use xla_hlo::text::parse_module;
use xla_hlo::verify;
use xla_passes::{TargetProfile, stages};

use super::{attempt, memory, run};

fn programs() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let corpus = env::var_os("XLA_CORPUS").map_or(beside, PathBuf::from);
    let mut programs = Vec::new();
    for suite in fs::read_dir(corpus).into_iter().flatten().flatten() {
        for case in fs::read_dir(suite.path()).into_iter().flatten().flatten() {
            programs.push(case.path().join("module.hlo"));
        }
    }
    programs.retain(|p| p.is_file());
    programs.sort();
    programs
}

#[test]
fn corpus_programs_run_in_their_buffers() {
    let profile = TargetProfile::generic();
    let pipeline = xla_passes::Pipeline::new("before")
        .stage(stages::canonicalize(&profile))
        .stage(stages::simplify(&profile))
        .stage(stages::layout(&profile))
        .stage(stages::fuse(&profile));
    let programs = programs();
    let mut checked = 0;
    for path in &programs {
        let text = fs::read_to_string(path).expect("a readable program");
        // Programs that the parser rejects are covered by other tests.
        let Some(mut module) = parse_module(&text).ok().filter(|m| verify::check(m).is_ok()) else { continue };
        attempt(path.display().to_string(), || {
            run(&pipeline, &mut module, &profile);
            let arguments = memory::arguments(&module);
            memory::check(module, &arguments, 20_000)
        });
        checked += 1;
    }
    assert!(programs.is_empty() || checked > 400, "only {checked} programs could be checked");
}
