//! Programs from the caller: StableHLO as bytecode or text, HLO as a message.

use xla_hlo::{Error, Layout, Module, ProgramShape, ResultExt, Shape, VerifiedModule};

use crate::abi::client::Program;
use crate::options::Options;
use crate::status::Status;

/// Magic number of MLIR bytecode.
const BYTECODE: &[u8] = b"ML\xefR";

/// Reads a program, applies the options to it, and verifies it.
pub(crate) fn read(program: &Program, options: &Options) -> Result<VerifiedModule, Status> {
    let code = program.code.bytes(program.code_size.get())?;
    let format = program.format.get();
    let format = format.as_str()?;
    let mut module = parse(format, code)?;
    if format == "hlo" {
        forget_layouts(&mut module);
    }
    options.apply(&mut module)?;
    Ok(VerifiedModule::new(module)?)
}

/// Resets the layouts of parameters and results to row-major.
///
/// A module in the format `hlo` has no configuration, so only the compile options specify its entry layouts. XLA also
/// ignores the layouts in the module itself. The modules of PyTorch/XLA have layouts that differ from those of its
/// buffers.
fn forget_layouts(module: &mut Module) {
    let ProgramShape { parameters, result } = module.entry_layout();
    let parameters = parameters.iter().map(row_major).collect();
    let result = row_major(&result);
    module.attributes_mut().entry_computation_layout = Some(ProgramShape { parameters, result });
}

fn row_major(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) if array.rank() == 0 => Shape::Array(array.clone().with_layout(None)),
        Shape::Array(array) => Shape::Array(array.clone().with_layout(Some(Layout::row_major(array.rank())))),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(row_major).collect()),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => shape.clone(),
    }
}

fn parse(format: &str, code: &[u8]) -> Result<Module, Status> {
    let module = match format {
        "mlir" if code.starts_with(BYTECODE) => xla_stablehlo::parse_bytecode(code),
        "mlir" => match std::str::from_utf8(code) {
            Ok(text) => xla_stablehlo::parse_text(text),
            Err(_) => Err(Error::invalid_argument("the bytes are neither MLIR bytecode nor text")),
        },
        "hlo" | "hlo_with_config" => xla_hlo::proto::parse_module(code),
        other => Err(Error::invalid_argument(format!(
            "format {other:?} is unknown; the formats are mlir, hlo, hlo_with_config"
        ))),
    };
    Ok(module.context(|| "the program")?)
}
