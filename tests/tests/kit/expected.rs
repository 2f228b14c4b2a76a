//! The file of expected failures.

use xla_tests::conformance::Expected;

#[test]
fn lines_are_ids_or_prefixes_with_a_reason() {
    let expected = Expected::parse("# not yet\n\n2/fft/* : no FFT unit\n4/models/gpt : too large\n").unwrap();
    assert_eq!(expected.line("2/fft/c64").unwrap().reason, "no FFT unit");
    assert_eq!(expected.line("4/models/gpt").unwrap().number, 4);
    assert!(expected.line("4/models/gpt2").is_none());
    for bad in ["2/fft/*", "2/fft/* :", ": why", "2/a b : why"] {
        let error = Expected::parse(bad).unwrap_err();
        assert!(error.message().starts_with("line 1 of the expected failures"), "{error}");
    }
}
