//! Programs for several devices: each device runs the program on its own values, and the service executes collectives.

use backend_template::DeviceOptions;
use xla_hlo::ElementType::S32;
use xla_hlo::eval::grid;
use xla_hlo::{ArrayShape, Literal, Scalar};
use xla_service::{Client, ClientOptions, CompileOptions, FallbackPolicy, PlatformRegistry};
use xla_tests::multi_device::{DeviceCase, cases, differences, run};

use crate::support::module;

/// Creates a client of 8 devices with this number of streams each.
fn client(streams: u32) -> Client {
    let mut registry = PlatformRegistry::new();
    let options = DeviceOptions { devices: 8, streams, ..DeviceOptions::default() };
    registry.register(backend_template::platform_with(options));
    Client::with_options(&registry, backend_template::NAME, ClientOptions::default()).unwrap()
}

#[test]
fn cases_of_the_corpus_run_without_a_join() {
    for streams in [1, 3] {
        let client = client(streams);
        let (cases, mut failures) = (cases().unwrap(), Vec::new());
        assert_eq!(cases.len(), 52);
        for DeviceCase { case, module, arguments, .. } in cases {
            match run(&client, &module, &arguments).and_then(|results| differences(&case, &results)) {
                Ok(differences) => failures.extend(differences.iter().map(|text| format!("{}: {text}", case.name))),
                Err(error) => failures.push(format!("{}: {error}", case.name)),
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert_eq!(client.joined_programs(), 0);
    }
}

#[test]
fn ids_and_collectives_work_in_loops_branches_and_fusions() {
    let module = module(include_str!("programs/ids_and_collectives.hlo"));
    let shape = ArrayShape::new(S32, [4]);
    let argument = |device: i64| Literal::from_fn(&shape, |i| Scalar::Signed(10 * device + i as i64)).unwrap();
    let arguments: Vec<Vec<Literal>> = (0..4).map(|device| vec![argument(device)]).collect();
    let expected = grid::evaluate(&module, arguments.clone()).unwrap();
    for streams in [1, 3] {
        let client = client(streams);
        let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, ..CompileOptions::default() };
        let coverage = client.compile(&module, &options).unwrap().thunks().unwrap().coverage();
        assert!(coverage.collectives > 5 && coverage.fallbacks.is_empty(), "{coverage:?}");
        assert_eq!(run(&client, &module, &arguments).unwrap(), expected);
    }
}
