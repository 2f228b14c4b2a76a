//! Targets of the fuzzers for StableHLO programs: a panic is a finding. `xla-stablehlo/tests` runs inputs that once
//! were findings.

use xla_hlo::VerifiedModule;
use xla_hlo::text::parse_module;
use xla_stablehlo::ir::Module;

/// An artifact that is read is printed and lowered; what is lowered is verified, and its text reads again.
pub fn bytecode(input: &[u8]) {
    if let Ok(module) = xla_stablehlo::bytecode::read(input) {
        accepted(&module, input.len());
    }
}

/// The same for MLIR text.
pub fn mlir(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(module) = xla_stablehlo::text::read(text) {
        accepted(&module, input.len());
    }
}

fn accepted(module: &Module, length: usize) {
    let printed = module.to_string();
    assert!(printed.len() <= 4096 + 512 * length, "{} bytes of text from a file of {length}", printed.len());
    let Ok(lowered) = xla_stablehlo::lower(module) else { return };
    let Ok(lowered) = VerifiedModule::new(lowered) else { return };
    let text = lowered.to_string();
    let again = parse_module(&text).unwrap_or_else(|error| panic!("what is printed cannot be read: {error}\n{text}"));
    assert_eq!(again.to_string(), text, "printed, read and printed again it is another module");
}
