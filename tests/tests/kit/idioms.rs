//! Idioms: templates of programs for many shapes.

use xla_hlo::Opcode;

use xla_hlo::InstrId;
use xla_tests::generate::{Family, idioms, program};

#[test]
fn every_idiom_has_an_instance_in_each_shape() {
    assert!(idioms().len() >= 110, "there are {} templates in tests/conformance/idioms", idioms().len());
    for idiom in idioms() {
        for (rows, cols, ty) in [(1, 1, idiom.types[0]), (3, 8, idiom.types[1]), (2, 1001, idiom.types[0])] {
            let instance = idiom.module(rows, cols, ty);
            instance.unwrap_or_else(|error| panic!("{} {ty} {rows}x{cols}: {error}", idiom.name));
        }
    }
}

#[test]
fn programs_of_the_family_call_idioms() {
    let calls = |seed: u64| {
        let program = program(Family::Idioms, seed);
        let is_call = |id: &InstrId| program.module.entry()[*id].opcode() == Opcode::Call;
        program.module.entry().ids().filter(is_call).count()
    };
    let programs = (0..100).filter(|&seed| calls(seed) > 0).count();
    assert!(programs >= 80, "{programs} of 100 programs call an idiom");
}
