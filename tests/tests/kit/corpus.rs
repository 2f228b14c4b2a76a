//! The corpus: complete cases, tolerances, exceptions, errors.

use xla_tests::corpus::{bench_program, not_yet, suite, suites};

#[test]
fn every_case_of_every_suite_is_whole() {
    let names = suites().unwrap();
    assert!(names.iter().any(|name| name == "models") && names.iter().all(|name| !name.starts_with("bench")));
    let mut count = 0;
    for case in names.iter().flat_map(|name| suite(name).unwrap()) {
        assert!(case.module.contains("HloModule"), "{}/{}", case.suite, case.name);
        let member = b"PK\x03\x04";
        assert!(case.expected.starts_with(member), "{}/{}", case.suite, case.name);
        assert_eq!(case.inputs.starts_with(member), !case.info.params.is_empty(), "{}/{}", case.suite, case.name);
        assert!(!case.info.opcodes.is_empty() && !case.info.outputs.is_empty());
        count += 1;
    }
    assert_eq!(count, 958);
}

#[test]
fn tolerances_and_devices_are_read() {
    let cases = suite("multi_device").unwrap();
    assert!(cases.iter().all(|case| case.info.num_replicas * case.info.num_partitions > 1));
    let dot = suite("dot").unwrap();
    assert!(dot.iter().any(|case| case.info.rtol > 0.0) && dot.iter().all(|case| case.info.num_replicas == 1));
}

#[test]
fn exceptions_are_told_by_opcode() {
    let waiting: Vec<_> = not_yet().collect();
    for case in suite("fft").unwrap() {
        let uses = case.info.opcodes.iter().any(|opcode| waiting.contains(&opcode.as_str()));
        assert_eq!(case.waits_for().is_some(), uses);
    }
}

#[test]
fn benchmark_programs_are_text() {
    assert!(bench_program("encoder_block").unwrap().contains("ENTRY"));
    let error = bench_program("no_such_program").unwrap_err().to_string();
    assert!(error.contains("no_such_program.hlo: is missing"), "{error}");
}

#[test]
fn an_unknown_suite_names_the_archive() {
    let Err(error) = suite("no_such_suite") else { panic!("read a suite that is not there") };
    assert!(error.to_string().contains("no_such_suite.zip"), "{error}");
}
