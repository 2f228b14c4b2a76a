//! Tests of scheduling, copy insertion and buffer assignment: programs run in their assigned memory.

mod cases;
mod corpus;
mod memory;
mod pack;
mod random;
mod verify;

use xla_hlo::eval::Evaluator;
use xla_hlo::{Module, Opcode};
use xla_passes::{
    AssignMemorySpaces, InsertCopies, MemorySpaceProfile, PassContext, Pipeline, Rematerialize, Schedule,
    TargetProfile, stages,
};

/// Number of random programs; each has a few dozen instructions with control flow nested up to four levels.
const PROGRAMS: u64 = 3000;

/// Returns the passes before scheduling, without simplifications that would reduce random programs to little.
fn before_scheduling(profile: &TargetProfile) -> Pipeline {
    Pipeline::new("before")
        .stage(stages::canonicalize(profile))
        .stage(stages::layout(profile))
        .stage(stages::fuse(profile))
}

fn run(pipeline: &Pipeline, module: &mut Module, profile: &TargetProfile) {
    pipeline.run(module, &PassContext::new(profile)).expect("the passes succeed");
}

/// Runs a test of one program, and names the program if the test fails.
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
    // Most loops of these programs start from parameters and constants and permute their state; nevertheless copies are
    // few.
    assert!(copies * 8 < instructions, "{copies} copies in {instructions} instructions");
}

#[test]
fn random_programs_run_in_less_memory() {
    let profile = TargetProfile { memory_bytes: Some(0), ..TargetProfile::generic() };
    let recompute = Pipeline::new("recompute").pass(Schedule).pass(Rematerialize);
    let (mut rewrites, mut saved) = (0, 0);
    for seed in 0..PROGRAMS / 5 {
        let (mut module, arguments) = random::program(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let (bytes, recomputed, count) = attempt(format!("seed {seed}"), || {
            let before = module.clone();
            if seed % 2 == 1 {
                run(&before_scheduling(&profile), &mut module, &profile);
            }
            let bytes = memory::check(module.clone(), &arguments, 1_000_000).buffers.total_bytes();
            let report = recompute.run(&mut module, &PassContext::new(&profile)).expect("the passes succeed");
            let value = |module: &Module| {
                Evaluator::new(module).with_step_limit(1_000_000).call(module.entry_id(), arguments.to_vec())
            };
            if let (Ok(old), Ok(new)) = (value(&before), value(&module)) {
                assert!(old.leaves().iter().zip(new.leaves()).all(|(old, new)| old.bytes() == new.bytes()), "{module}");
            }
            let outcome = memory::check(module, &arguments, 1_000_000);
            (bytes, outcome.buffers.total_bytes(), report.rewrites().values().sum::<u64>())
        });
        assert!(recomputed <= bytes, "seed {seed} needs {recomputed} bytes instead of {bytes}");
        assert_eq!(
            recomputed < bytes,
            count > 0,
            "seed {seed}: {count} rewrites, {recomputed} bytes instead of {bytes}"
        );
        rewrites += count;
        saved += bytes - recomputed;
    }
    assert!(rewrites > 0 && saved > 0, "no program was made smaller");
}

#[test]
fn random_programs_run_in_two_memories() {
    let space = MemorySpaceProfile {
        space: 3,
        bytes: 1 << 10,
        alignment: 64,
        max_value_bytes: 256,
        constants: true,
        staged: [Opcode::Add, Opcode::Dot, Opcode::Fusion, Opcode::DynamicUpdateSlice].into(),
    };
    let (mut used, mut staged) = (0, 0);
    for seed in 0..PROGRAMS / 5 {
        let (mut module, arguments) = random::program(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let bytes = (seed as usize % 5) << 8;
        let spaces = MemorySpaceProfile { bytes, constants: seed % 3 == 0, ..space.clone() };
        let profile = TargetProfile { memory_spaces: vec![spaces], ..TargetProfile::generic() };
        let outcome = attempt(format!("seed {seed}"), || {
            if seed % 2 == 1 {
                run(&before_scheduling(&profile), &mut module, &profile);
            }
            run(&Pipeline::new("order").pass(Schedule).pass(InsertCopies), &mut module, &profile);
            let before = module.instruction_count();
            let spaces = Pipeline::new("spaces").pass(AssignMemorySpaces);
            run(&spaces, &mut module, &profile);
            staged += module.instruction_count() - before;
            let again = spaces.run(&mut module.clone(), &PassContext::new(&profile)).expect("the pass succeeds");
            assert!(!again.is_changed(), "a second run changes it");
            memory::check(module, &arguments, 1_000_000)
        });
        assert_eq!(outcome.copies, 0, "seed {seed}");
        let there = outcome.buffers.allocations().iter().filter(|a| a.memory_space == 3).map(|a| a.size).sum::<usize>();
        assert!(there <= bytes, "seed {seed}: {there} bytes of {bytes}\n{}", outcome.buffers);
        used += there;
    }
    assert!(used > 0 && staged > 0, "{used} bytes, {staged} copies");
}
