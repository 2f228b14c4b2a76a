//! Recipes: one program for each operation.

use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Opcode, VerifiedModule};
use xla_tests::coverage::{program_text, recipe, recipes};

#[test]
fn each_opcode_has_one_recipe() {
    for &opcode in Opcode::ALL {
        assert_eq!(recipes(opcode).count(), usize::from(opcode != Opcode::Shuffle), "{opcode}");
    }
}

#[test]
fn each_recipe_is_a_program_for_some_type() {
    for &opcode in Opcode::ALL.iter().filter(|&&opcode| recipe(opcode).is_some()) {
        let mut refusals = Vec::new();
        let is_program = |&ty: &ElementType| {
            let text = program_text(opcode, ty).unwrap();
            parse_module(&text).and_then(VerifiedModule::new).map_err(|error| refusals.push(error)).is_ok()
        };
        assert!(ElementType::ALL.iter().any(is_program), "{opcode}: {}", refusals[0]);
    }
}
