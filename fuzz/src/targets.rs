//! Fuzz targets: a panic is a finding. `tests/tests/programs/fuzz_inputs.rs` runs the inputs of past findings.

use xla_hlo::proto;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, CompId, ElementType, InstrId, Module, Shape, VerifiedModule};
use xla_passes::{PassContext, PassOptions, TargetProfile, stages};

/// Maximum number of instructions of a module that [`passes`] processes.
const MOST_INSTRUCTIONS: usize = 300;
/// Maximum number of elements of an array in a module that [`passes`] processes: constants of that size may be
/// computed.
const MOST_ELEMENTS: usize = 1 << 14;

/// Parses a module and prints it; the text must parse as the same module.
pub fn text(input: &[u8]) {
    if let Some(module) = verified(input) {
        text_round_trip(&module);
    }
}

/// Parses a protobuf module, serializes it and parses it again; the module must be the same. Its text must parse as the
/// same module too.
pub fn proto(input: &[u8]) {
    let Ok(mut module) = proto::parse_module(input) else { return };
    name_apart(&mut module);
    let Ok(module) = VerifiedModule::new(module) else { return };
    let printed = module.to_string();
    let written = proto::serialize_module(&module)
        .unwrap_or_else(|error| panic!("what was read cannot be written: {error}\n{printed}"));
    let again = proto::parse_module(&written)
        .unwrap_or_else(|error| panic!("what is written cannot be read: {error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "written and read again it is another module");
    text_round_trip(&module);
}

/// Renames instructions to unique names in the whole module, as serialization does.
fn name_apart(module: &mut Module) {
    let ids: Vec<CompId> = module.ids().collect();
    for (i, id) in ids.into_iter().enumerate() {
        let computation = module.computation_mut(id);
        let instructions: Vec<InstrId> = computation.ids().collect();
        for (place, instruction) in instructions.into_iter().enumerate() {
            computation.rename(instruction, &format!("v{i}-{place}"));
        }
    }
}

/// Runs all passes on a module, with the verifier after each.
pub fn passes(input: &[u8]) {
    let Some(module) = verified(input) else { return };
    if module.instruction_count() > MOST_INSTRUCTIONS || !is_small(&module) {
        return;
    }
    let mut module = module.into_inner();
    let profile = TargetProfile::generic();
    let context = PassContext::new(&profile).with_options(PassOptions { verify: true, ..PassOptions::default() });
    if let Err(xla_hlo::Error::Internal(detail)) = stages::standard(&profile).run(&mut module, &context) {
        panic!("{detail:?}");
    }
}

/// Reads an archive; if it is accepted, reads its arrays.
pub fn npz(input: &[u8]) {
    let Ok(mut archive) = xla::npz::Archive::from_bytes("input.npz", input.to_vec()) else { return };
    let names = archive.names().clone();
    for name in names.iter().take(8) {
        for &ty in ElementType::ALL {
            for dims in [&[][..], &[4], &[2, 3], &[0, 1 << 20]] {
                // The archive checks whether the array has that shape.
                let _ = archive.read(name, &ArrayShape::new(ty, dims));
            }
        }
    }
}

fn text_round_trip(module: &Module) {
    let printed = module.to_string();
    let again =
        parse_module(&printed).unwrap_or_else(|error| panic!("what is printed cannot be read: {error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "printed, read and printed again it is another module");
    if let Err(error) = VerifiedModule::new(again) {
        panic!("a verified module, printed and read, is refused: {error}\n{printed}");
    }
}

fn verified(input: &[u8]) -> Option<VerifiedModule> {
    VerifiedModule::new(parse_module(std::str::from_utf8(input).ok()?).ok()?).ok()
}

fn is_small(module: &Module) -> bool {
    let small = |shape: &Shape| {
        shape
            .leaves()
            .iter()
            .all(|(_, leaf)| leaf.as_array().is_none_or(|array| array.element_count() <= MOST_ELEMENTS))
    };
    module.iter().all(|(_, computation)| computation.iter().all(|(_, instruction)| small(instruction.shape())))
}
