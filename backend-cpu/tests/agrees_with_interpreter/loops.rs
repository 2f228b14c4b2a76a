//! Tests that loops are one kernel if their steps compute single elements, and only then.

use xla_hlo::VerifiedModule;
use xla_hlo::text::parse_module;
use xla_service::thunks::ThunkKind;
use xla_service::{Client, CompileOptions, PlatformRegistry};

const SCALARS: &str = include_str!("../../../tests/regressions/loop_of_scalars_counts_through_memory.hlo");

/// Returns the numbers of thunks in the condition and in the body of each loop. Loops with a known trip count that are
/// one kernel are not listed.
fn loops(text: &str) -> Vec<[usize; 2]> {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let program = Client::new(&registry, "cpu").unwrap().compile(&module, &CompileOptions::default()).unwrap();
    let thunks = program.thunks().unwrap().walk();
    let of_loop = |kind: &ThunkKind| match kind {
        ThunkKind::While { condition, body, .. } => Some([condition.thunks.len(), body.thunks.len()]),
        _ => None,
    };
    thunks.filter_map(|thunk| of_loop(&thunk.kind)).collect()
}

#[test]
fn loop_of_scalars_is_one_kernel() {
    let found = loops(SCALARS);
    assert!(!found.is_empty() && found.iter().all(|counts| *counts == [1, 0]), "{found:?}");
}

#[test]
fn loop_over_arrays_calls_its_kernels() {
    let found = loops(include_str!("programs/loop_over_arrays_calls_its_kernels.hlo"));
    assert!(matches!(found[..], [[1, body]] if body > 0), "{found:?}");
}
