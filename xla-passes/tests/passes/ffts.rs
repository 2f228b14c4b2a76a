//! Tests of decomposed Fourier transforms: their radices, and results whose tables are too long for snapshots.

use xla_hlo::text::parse_module;
use xla_hlo::{Opcode, verify};
use xla_passes::internals::{MAX_COMPOSITE, MAX_DIRECT, radices};
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

fn is_prime(n: usize) -> bool {
    n > 1 && (2..).take_while(|p| p * p <= n).all(|p| !n.is_multiple_of(p))
}

#[test]
fn products_are_the_length() {
    for n in (2..600).chain([1000, 1024, 1500, 4093, 4489, 65521, 65536]) {
        for count in [0, 1, 1000] {
            let radices = radices(n, count);
            assert_eq!(radices.iter().product::<usize>(), n, "{radices:?}");
            assert!(radices.iter().all(|&r| r <= MAX_COMPOSITE || is_prime(r)), "{radices:?}");
        }
    }
}

#[test]
fn large_lines_have_small_radices() {
    assert_eq!(radices(32, 1), [32]);
    assert_eq!(radices(256, 16), [8, 8, 4]);
    assert_eq!(radices(1024, 16), [16, 8, 8]);
    assert_eq!(radices(4096, 1), [8, 8, 8, 8]);
    assert_eq!(radices(2 * 257, 1), [257, 2]);
    const { assert!(MAX_DIRECT < 257) };
}
