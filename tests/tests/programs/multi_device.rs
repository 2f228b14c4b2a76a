//! Programs of the corpus for several devices return the expected outputs of each device, in the evaluator over the
//! grid and on the devices of the interpreter, the CPU, the emulated GPU and GPUs.
//!
//! Programs that need a partitioner are left out.

use xla::{Client, Literal, PlatformRegistry, Result};
use xla_hlo::eval::grid;
use xla_service::{ClientOptions, interpreter};
use xla_tests::multi_device::{DeviceCase, cases, differences, run};

/// Checks all cases with the results of each device from `evaluate`.
fn agree(evaluate: impl Fn(&DeviceCase) -> Result<Vec<Literal>>) {
    let cases = cases().unwrap();
    assert_eq!(cases.len(), 52);
    let failure = |case: &DeviceCase| match evaluate(case).and_then(|results| differences(&case.case, &results)) {
        Ok(differences) if differences.is_empty() => None,
        Ok(differences) => Some(format!("{}: {}", case.case.name, differences.join("; "))),
        Err(error) => Some(format!("{}: {error}", case.case.name)),
    };
    let failures: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

fn client(registry: &PlatformRegistry, platform: &str) -> Client {
    let options = ClientOptions { devices: Some(8), ..ClientOptions::default() };
    Client::with_options(registry, platform, options).unwrap()
}

#[test]
fn programs_of_one_device_agree() {
    agree(|case| grid::evaluate(&case.local, case.arguments.clone()));
}

#[test]
fn devices_of_the_interpreter_agree_without_a_join() {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let client = client(&registry, interpreter::NAME);
    agree(|case| {
        let results = run(&client, &case.module, &case.arguments)?;
        assert_eq!(results, grid::evaluate(&case.local, case.arguments.clone())?, "{}", case.case.name);
        Ok(results)
    });
    assert_eq!(client.joined_programs(), 0);
}

#[cfg(feature = "cpu")]
#[test]
fn devices_of_the_cpu_agree_without_a_join() {
    let client = client(&xla::registry(), "cpu");
    agree(|case| run(&client, &case.module, &case.arguments));
    assert_eq!(client.joined_programs(), 0);
}

#[cfg(feature = "gpu")]
#[test]
fn devices_of_the_emulated_gpu_agree_without_a_join() {
    let client = client(&xla::registry(), "gpu-emulated");
    agree(|case| run(&client, &case.module, &case.arguments));
    assert_eq!(client.joined_programs(), 0);
}

/// Does nothing on machines with fewer GPUs, simulated ones included.
#[cfg(feature = "gpu")]
#[test]
fn devices_of_gpus_agree_without_a_join() {
    let registry = xla::registry();
    if registry.get("gpu").and_then(|platform| platform.executors(Some(8))).is_err() {
        return;
    }
    let client = client(&registry, "gpu");
    agree(|case| run(&client, &case.module, &case.arguments));
    assert_eq!(client.joined_programs(), 0);
}
