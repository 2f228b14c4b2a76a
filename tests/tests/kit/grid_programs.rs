//! Random programs for several devices are valid, and have all collectives.

use std::collections::BTreeSet;

use xla_hlo::Op;
use xla_hlo::eval::grid;
use xla_tests::grid_programs::{GridProgram, Kinds, program};

#[test]
fn joined_programs_are_joined() {
    for seed in 0..60 {
        let GridProgram { module, .. } = program(seed, 2 + seed as usize % 3, Kinds::Joined).unwrap();
        xla_passes::join::join_devices(&module).unwrap_or_else(|error| panic!("{error}\n{}", *module));
    }
}

#[test]
fn programs_are_valid_and_have_all_collectives() {
    let mut seen = BTreeSet::new();
    for seed in 0..150 {
        let GridProgram { module, arguments } = program(seed, 2 + seed as usize % 7, Kinds::All).unwrap();
        for id in module.ids() {
            let ops = module[id].iter().map(|(_, instruction)| instruction.op());
            seen.extend(ops.filter(|op| matches!(op, Op::Collective(_))).map(|op| op.opcode().to_string()));
        }
        if seed % 10 == 0 {
            grid::evaluate(&module, arguments).unwrap_or_else(|error| panic!("{error}\n{}", *module));
        }
    }
    for kind in [
        "all-gather",
        "all-gather-start",
        "all-reduce",
        "all-reduce-start",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "collective-permute-start",
        "collective-reduce",
        "partition-id",
        "ragged-all-to-all",
        "reduce-scatter",
        "replica-id",
    ] {
        assert!(seen.contains(kind), "{kind}: {seen:?}");
    }
}
