//! Tests of decomposed Fourier transforms whose tables are too long for snapshots.

use xla_hlo::text::parse_module;
use xla_hlo::{Opcode, verify};
use xla_passes::{ExpandFfts, Pass, PassContext, TargetProfile};

use crate::support::{difference, evaluate};

/// Compares a transform with its expansion on random numbers.
fn agrees(n: usize, operand: &str, result: &str, kind: &str) {
    let text = format!(
        "ENTRY main {{ x = {operand} parameter(0) ROOT y = {result} fft(x), fft_type={kind}, fft_length={{{n}}} }}"
    );
    let before = parse_module(&text).expect("a module");
    let mut after = before.clone();
    let mut profile = TargetProfile::generic();
    profile.lacks.insert(Opcode::Fft);
    let changed = ExpandFfts.run(&mut after, &PassContext::new(&profile)).expect("the pass runs");
    assert!(changed.is_changed(), "{n}");
    verify::check(&after).expect("a valid module");
    let run = |module| evaluate(module, 3, false, 10_000).expect("it evaluates");
    let differs = difference(&run(&before), &run(&after), true);
    assert!(differs.is_none(), "{kind} of {n}: {differs:?}");
}

#[test]
fn long_lines_are_taken_apart() {
    // Powers of two, factors with factors, primes with small factors, primes above the limit of direct sums, squares of
    // these.
    for n in [128, 240, 134, 146, 1000, 2048, 2310, 4489] {
        agrees(n, &format!("c128[{n}]"), &format!("c128[{n}]"), "FFT");
        agrees(n, &format!("c128[2,{n}]"), &format!("c128[2,{n}]"), "IFFT");
        let half = n / 2 + 1;
        agrees(n, &format!("f64[{n}]"), &format!("c128[{half}]"), "RFFT");
        agrees(n, &format!("c128[{half}]"), &format!("f64[{n}]"), "IRFFT");
    }
}

#[test]
fn large_prime_factors_are_convolved() {
    for n in [257, 514, 1031] {
        agrees(n, &format!("c128[2,{n}]"), &format!("c128[2,{n}]"), "FFT");
        agrees(n, &format!("c128[{n}]"), &format!("c128[{n}]"), "IFFT");
        let half = n / 2 + 1;
        agrees(n, &format!("f64[2,{n}]"), &format!("c128[2,{half}]"), "RFFT");
        agrees(n, &format!("c128[{half}]"), &format!("f64[{n}]"), "IRFFT");
    }
}
