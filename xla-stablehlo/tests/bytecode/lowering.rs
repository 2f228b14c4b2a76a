//! Programs of JAX as HLO modules: text that the verifier accepts, and refusals that name the operation and its place.

use xla_hlo::{Module, Result, VerifiedModule};
use xla_stablehlo::parse_bytecode;

use crate::files;

/// Programs for several devices with shardings of Shardy.
const SHARDED: [&str; 3] = ["shard_map_all_gather_ppermute", "shard_map_psum", "sharding_constraint"];

fn verified(bytes: &[u8]) -> Result<Module> {
    Ok(VerifiedModule::new(parse_bytecode(bytes)?)?.into_inner())
}

#[test]
fn programs_become_modules() {
    for (name, bytes) in files("").into_iter().filter(|(name, _)| !SHARDED.contains(&name.as_str())) {
        let module = verified(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::assert_snapshot!(format!("lowered_{name}"), module.to_string());
    }
}

#[test]
fn every_target_becomes_the_same_module() {
    let targets = files("targets");
    let texts: Vec<String> = targets.iter().map(|(_, bytes)| verified(bytes).expect("a module").to_string()).collect();
    for (text, (name, _)) in texts.iter().zip(&targets) {
        assert_eq!(text, &texts[0], "{name}");
    }
}

#[test]
fn operations_without_a_lowering_are_named() {
    for (name, operation) in
        SHARDED.iter().zip(["sdy.manual_computation"; 2].iter().chain(&["sdy.sharding_constraint"]))
    {
        let (_, bytes) = files("").into_iter().find(|(file, _)| file == name).expect("the file");
        let error = verified(&bytes).expect_err("no lowering").to_string();
        assert!(error.starts_with(&format!("function main: {operation}, byte ")), "{error}");
        assert!(error.ends_with("is not lowered to HLO yet"), "{error}");
    }
}
