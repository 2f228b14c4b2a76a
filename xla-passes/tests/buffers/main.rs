//! Scheduling, copy insertion and buffer assignment, checked by running programs in the memory they were given.

mod memory;
mod random;

/// How many random programs the test runs; each is a few dozen instructions with control flow up to four levels deep.
const PROGRAMS: u64 = 3000;

#[test]
fn random_programs_run_in_their_buffers() {
    let (mut copies, mut leaves) = (0, 0);
    for seed in 0..PROGRAMS {
        let (module, arguments) = random::program(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let outcome = std::panic::catch_unwind(|| memory::check(module, &arguments));
        let Ok((inserted, module, _)) = outcome else { panic!("seed {seed} failed") };
        copies += inserted;
        leaves += module.instruction_count();
    }
    // Copies are few: what this generator makes needs far less than one for each ten instructions.
    assert!(copies * 10 < leaves, "{copies} copies in {leaves} instructions");
}
