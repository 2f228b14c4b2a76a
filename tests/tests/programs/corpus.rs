//! Programs of the committed corpus return the expected outputs, on the CPU and in the evaluator.
//!
//! Each suite on each platform is a test. Cases that use an opcode of `tests/corpus/not-yet.txt` are skipped.
#![expect(clippy::print_stdout, reason = "a test says how many cases it ran")]

use xla::compare::Tolerance;
use xla::npz::Archive;
use xla::{Client, CompileOptions, Result, VerifiedModule};
use xla_hlo::text::parse_module;
use xla_tests::corpus::{self, Case};

/// Returns the outputs of a case that differ, or its error; `None` if all agree.
fn failure(client: &Client, case: &Case) -> Option<String> {
    let label = format!("{}/{}", case.suite, case.name);
    match differences(client, case) {
        Ok(differences) if differences.is_empty() => None,
        Ok(differences) => Some(format!("{label}: {}", differences.join("; "))),
        Err(error) => Some(format!("{label}: {error}")),
    }
}

fn differences(client: &Client, case: &Case) -> Result<Vec<String>> {
    let module = VerifiedModule::new(parse_module(&case.module)?)?;
    let program = client.compile(&module, &CompileOptions::default())?;
    let arguments = program.signature().arguments();
    let mut buffers = Vec::new();
    if !arguments.is_empty() {
        let mut inputs = Archive::from_bytes("inputs.npz", case.inputs.clone())?;
        for (i, leaf) in arguments.iter().enumerate() {
            buffers.push(program.argument_buffer(i, &inputs.read(&format!("arg{i}"), &leaf.shape)?)?);
        }
    }
    let results = program.execute(&buffers.iter().collect::<Vec<_>>())?;
    let mut expected = Archive::from_bytes("expected.npz", case.expected.clone())?;
    assert_eq!(expected.names().len(), results.len(), "{}: as many outputs as expected", case.name);
    let (rtol, atol) = (case.info.rtol, case.info.atol);
    let tolerance = Tolerance { rtol, atol, signed_zero: case.info.signed_zero };
    let mut differences = Vec::new();
    for (i, (buffer, leaf)) in results.iter().zip(program.signature().results()).enumerate() {
        let expected = expected.read(&format!("out{i}"), &leaf.shape)?;
        let difference = tolerance.difference(&expected, &buffer.to_literal()?);
        differences.extend(difference.map(|difference| format!("out{i} {}: {difference}", expected.shape())));
    }
    Ok(differences)
}

fn check(suite: &str, platform: &str) {
    let client = Client::new(&xla::registry(), platform).unwrap();
    let (waiting, cases): (Vec<_>, Vec<_>) =
        corpus::suite(suite).unwrap().into_iter().partition(|case| case.waits_for().is_some());
    let failures: Vec<String> = cases.iter().filter_map(|case| failure(&client, case)).collect();
    println!("{suite} on {platform}: {} cases, {} left out, {} failed", cases.len(), waiting.len(), failures.len());
    assert!(!cases.is_empty());
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

macro_rules! suites {
    ($($suite:ident)*) => {
        $(mod $suite {
            #[test]
            fn cpu() {
                super::check(stringify!($suite), "cpu");
            }

            #[test]
            fn interpreter() {
                super::check(stringify!($suite), "interpreter");
            }
        })*

        #[test]
        fn every_suite_is_checked() {
            // Suites whose programs need operations, attributes or devices that are not supported yet.
            let later = ["conv", "fft", "hlo_text", "linalg", "multi_device", "sort"];
            let mut known: Vec<&str> = [$(stringify!($suite)),*].into_iter().chain(later).collect();
            known.sort_unstable();
            assert_eq!(corpus::suites().unwrap(), known);
        }
    };
}

suites! { complex control_flow dot elementwise gather_scatter models reductions rng shapes zoo }
