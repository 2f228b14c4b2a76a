//! Tests of reading JAX programs of all versions of VHLO.

use xla_hlo::entity::EntityId;
use xla_stablehlo::bytecode;
use xla_stablehlo::ir::{Module, ValueId, Version};

use crate::files;

#[test]
fn programs_are_read() {
    let programs = files("");
    assert!(programs.len() > 10);
    for (name, bytes) in programs {
        let module = bytecode::read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::assert_snapshot!(name, module.to_string());
    }
}

/// Returns operations without their versions, with operands, attributes common to all forms, and types of results.
fn outline(module: &Module) -> Vec<String> {
    let text = |values: &[ValueId]| values.iter().map(|v| v.index().to_string()).collect::<Vec<_>>().join(" ");
    let line = |op| {
        let operation = &module.operations[op];
        let name = module.text(operation.name).into_owned();
        let stem = name.rsplit_once("_v").map_or(name.as_str(), |(stem, _)| stem);
        let types = operation.results.iter().map(|&result| module.type_text(module.values[result].ty));
        let inherent = ["value", "dimensions", "callee", "sym_name", "permutation"];
        let attributes = inherent.iter().filter_map(|name| Some(module.attribute_text(module.attribute(op, name)?)));
        let parts: Vec<String> = types.chain(attributes).collect();
        format!("{stem} {} : {}", text(&operation.operands), parts.join(", "))
    };
    module.walk().map(line).collect()
}

#[test]
fn every_target_gives_the_same_program() {
    let targets = files("targets");
    assert_eq!(targets.len(), 9);
    let modules: Vec<Module> = targets.iter().map(|(_, bytes)| bytecode::read(bytes).expect("a module")).collect();
    for (module, (name, _)) in modules.iter().zip(&targets) {
        let parts: Vec<u32> = name.split('.').map(|part| part.parse().expect("a number")).collect();
        assert_eq!(module.version, Some(Version(parts[0], parts[1], parts[2])));
        assert_eq!(outline(module), outline(&modules[0]), "{name}");
    }
    let newest = modules.iter().max_by_key(|module| module.version).expect("a module");
    insta::assert_snapshot!("targets", newest.to_string());
}
