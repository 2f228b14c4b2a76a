//! Comparison of a platform with the reference evaluator, element by element, for a backend's own tests.

pub mod programs;

use std::sync::Arc;

use xla_hlo::text::parse_module;
use xla_hlo::{Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, FallbackPolicy, Platform, PlatformRegistry, interpreter};

use crate::arguments::TOLERANCE;
pub use crate::arguments::input;
use crate::conformance::program_files;
use crate::program::Program;

/// Runs a program, given as HLO text, on a platform and in the evaluator, on inputs that are equal in every run. Host
/// fallbacks to the evaluator are not allowed.
///
/// # Panics
///
/// Panics if the program is invalid or does not run, or if a result differs: in its shape, an integer, the sign of a
/// zero, or by more than 1e-5.
pub fn assert_agrees(platform: Arc<dyn Platform>, text: &str) {
    assert_agrees_with(platform, text, &CompileOptions::default());
}

/// Compares a program with the evaluator like [`assert_agrees`], with other compile options.
///
/// # Panics
///
/// Panics like [`assert_agrees`].
pub fn assert_agrees_with(platform: Arc<dyn Platform>, text: &str, options: &CompileOptions) {
    let module = VerifiedModule::new(parse_module(text).expect("the text parses")).expect("the module is valid");
    let name = platform.name().to_string();
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    registry.register(interpreter::platform());
    let entry = module.entry();
    let inputs: Vec<Literal> =
        entry.parameters().iter().enumerate().map(|(i, &p)| input(entry[p].shape(), i)).collect();
    let run = |platform: &str| {
        let client = Client::new(&registry, platform).expect("the platform is registered");
        let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, ..options.clone() };
        let program = client.compile(&module, &options).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
        let buffers: Vec<_> = inputs.iter().map(|i| client.buffer(i).expect("an upload")).collect();
        let results = program.execute(&buffers.iter().collect::<Vec<_>>());
        let results = results.unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
        results.iter().map(|r| r.to_literal().expect("a download")).collect::<Vec<_>>()
    };
    let (expected, found) = (run(interpreter::NAME), run(&name));
    assert_eq!(expected.len(), found.len());
    for (number, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert_close(found, expected, &format!("result {number} of\n{text}"));
    }
}

/// Compiles the programs that the conformance kit runs on every platform, without host fallbacks.
///
/// # Panics
///
/// Panics if a program does not compile.
pub fn assert_native(platform: Arc<dyn Platform>) {
    let name = platform.name().to_string();
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    let client = Client::new(&registry, &name).expect("the platform is registered");
    let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, ..CompileOptions::default() };
    let mut failures = Vec::new();
    for path in program_files() {
        let text = std::fs::read_to_string(&path).expect("a file of text");
        let program = Program::from_text(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let module = VerifiedModule::new(program.module).expect("the module is valid");
        failures.extend(client.compile(&module, &options).err().map(|e| format!("{}: {e}", path.display())));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Compares an array with the evaluator's; `what` is part of the message.
///
/// # Panics
///
/// Panics if they differ in their shape, an integer, the sign of a zero, or by more than 1e-5.
pub fn assert_close(found: &Literal, expected: &Literal, what: &str) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    for i in 0..expected.array_shape().element_count() {
        let (found, expected) = (found.get(i), expected.get(i));
        assert!(is_close(found, expected), "element {i}: {found:?} expected {expected:?}: {what}");
    }
}

/// Returns whether numbers are equal up to the tolerance; NaNs are equal, zeros of different signs are not.
pub fn is_close(actual: Scalar, expected: Scalar) -> bool {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let within = |error: f64, size: f64| size.is_finite() && error <= TOLERANCE + TOLERANCE * size;
    match (actual, expected) {
        // Zeros of different signs compare equal, but do not agree.
        (Scalar::Float(a), Scalar::Float(b)) => same(a, b) || (a != b && within((a - b).abs(), b.abs())),
        // Real and imaginary part are computed from each other, so the error of the smaller part is relative to the
        // larger one, and zeros may have any sign.
        (Scalar::Complex(a, c), Scalar::Complex(b, d)) => {
            ((same(a, b) || a == b) && (same(c, d) || c == d)) || within((a - b).hypot(c - d), b.hypot(d))
        }
        (a, b) => a == b,
    }
}
