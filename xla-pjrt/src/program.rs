//! Programs of the caller: StableHLO as bytecode or text, HLO as a message.

use xla_hlo::{Error, Module, ResultExt, VerifiedModule};

use crate::abi::client::Program;
use crate::options::Options;
use crate::status::Status;

/// The first bytes of MLIR's bytecode.
const BYTECODE: &[u8] = b"ML\xefR";

/// Reads a program, applies the options to it, and verifies it.
pub(crate) fn read(program: &Program, options: &Options) -> Result<VerifiedModule, Status> {
    let code = program.code.bytes(program.code_size.get())?;
    let format = program.format.get();
    let mut module = parse(format.as_str()?, code)?;
    options.apply(&mut module)?;
    Ok(VerifiedModule::new(module)?)
}

fn parse(format: &str, code: &[u8]) -> Result<Module, Status> {
    let module = match format {
        "mlir" if code.starts_with(BYTECODE) => xla_stablehlo::parse_bytecode(code),
        "mlir" => match std::str::from_utf8(code) {
            Ok(text) => xla_stablehlo::parse_text(text),
            Err(_) => Err(Error::invalid_argument("neither MLIR bytecode nor text")),
        },
        "hlo" | "hlo_with_config" => xla_hlo::proto::parse_module(code),
        other => Err(Error::invalid_argument(format!(
            "programs of format {other:?} are not known; known are mlir, hlo, hlo_with_config"
        ))),
    };
    Ok(module.context(|| "the program")?)
}
