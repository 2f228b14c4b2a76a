//! Scheduling, copy insertion and buffer assignment, checked by running programs in the memory they were given.

mod cases;
mod corpus;
mod memory;
mod random;

use xla_hlo::Module;
use xla_passes::{PassContext, Pipeline, TargetProfile, stages};

/// How many random programs the test runs; each is a few dozen instructions with control flow up to four levels deep.
const PROGRAMS: u64 = 3000;

/// What comes before scheduling, without the simplifications that would leave little of a random program.
fn before_scheduling(profile: &TargetProfile) -> Pipeline {
    Pipeline::new("before")
        .stage(stages::canonicalize(profile))
        .stage(stages::layout(profile))
        .stage(stages::fuse(profile))
}

fn run(pipeline: &Pipeline, module: &mut Module, profile: &TargetProfile) {
    pipeline.run(module, &PassContext::new(profile)).expect("the passes succeed");
}

/// Runs a test of one program; says which it was when that fails.
fn attempt<T>(what: String, test: impl FnOnce() -> T) -> T {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
    outcome.unwrap_or_else(|_| panic!("{what} failed"))
}

#[test]
fn random_programs_run_in_their_buffers() {
    let profile = TargetProfile::generic();
    let (mut copies, mut instructions) = (0, 0);
    for seed in 0..PROGRAMS {
        let (mut module, arguments) = random::program(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let outcome = attempt(format!("seed {seed}"), || {
            if seed % 2 == 1 {
                run(&before_scheduling(&profile), &mut module, &profile);
            }
            memory::check(module, &arguments, 1_000_000)
        });
        copies += outcome.copies;
        instructions += outcome.module.instruction_count();
    }
    // Most of these programs' loops start from parameters and constants and change places; still copies are few.
    assert!(copies * 8 < instructions, "{copies} copies in {instructions} instructions");
}
