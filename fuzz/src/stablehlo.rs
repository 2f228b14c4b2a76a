//! Fuzz targets for StableHLO programs: a panic is a finding. `xla-stablehlo/tests` runs the inputs of past findings.

use xla_hlo::VerifiedModule;
use xla_hlo::text::parse_module;
use xla_stablehlo::ir::Module;

/// Reads an artifact, prints it and lowers it. The text of a lowered module that passes the verifier must parse as the
/// same module.
pub fn bytecode(input: &[u8]) {
    if let Ok(module) = xla_stablehlo::bytecode::read(input) {
        accepted(&module, input.len());
    }
}

/// Checks MLIR text in the same manner.
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
