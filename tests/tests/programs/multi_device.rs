//! Programs of the corpus for several devices return the expected outputs of each device, in the evaluator over the
//! grid and on the devices of the interpreter.
//!
//! Programs with shardings of global values are left out, since they need a partitioner.

use xla::{Client, Literal, PlatformRegistry, Result, VerifiedModule};
use xla_hlo::eval::grid;
use xla_service::{ClientOptions, interpreter};
use xla_tests::corpus::Case;
use xla_tests::multi_device::{cases, differences, inputs, run};

/// Checks all cases with results from `evaluate`, which receives a module and the arguments of each device.
fn agree(evaluate: impl Fn(&VerifiedModule, Vec<Vec<Literal>>) -> Result<Vec<Literal>>) {
    let cases = cases().unwrap();
    assert_eq!(cases.len(), 46);
    let outcome = |case: &Case| {
        let (module, arguments) = inputs(case)?;
        assert_eq!(arguments.len(), (case.info.num_replicas * case.info.num_partitions) as usize, "{}", case.name);
        differences(case, &evaluate(&module, arguments)?)
    };
    let failure = |case: &Case| match outcome(case) {
        Ok(differences) if differences.is_empty() => None,
        Ok(differences) => Some(format!("{}: {}", case.name, differences.join("; "))),
        Err(error) => Some(format!("{}: {error}", case.name)),
    };
    let failures: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn programs_of_one_device_agree() {
    agree(|module, arguments| grid::evaluate(module, arguments));
}

#[test]
fn devices_of_the_interpreter_agree_without_a_join() {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let options = ClientOptions { devices: Some(8), ..ClientOptions::default() };
    let client = Client::with_options(&registry, interpreter::NAME, options).unwrap();
    agree(|module, arguments| {
        let results = run(&client, module, &arguments)?;
        assert_eq!(results, grid::evaluate(module, arguments)?, "{}", module.name());
        Ok(results)
    });
    assert_eq!(client.joined_programs(), 0);
}
