//! Launches of programs on a platform, in every mode that they can be run in.

use xla::{Buffer, Client, CompileOptions, ExecuteOptions, Literal, LoadedExecutable, Result, VerifiedModule};
use xla_hlo::ElementType;

/// Compiles with the default options.
pub fn compile(client: &Client, module: &VerifiedModule) -> Result<LoadedExecutable> {
    client.compile(module, &CompileOptions::default())
}

/// Returns a buffer for each array of the arguments.
pub fn buffers(compiled: &LoadedExecutable, arguments: &[Literal]) -> Result<Vec<Buffer>> {
    arguments.iter().enumerate().map(|(i, argument)| compiled.argument_buffer(i, argument)).collect()
}

/// Launches the program without waiting for its results.
pub fn launch(compiled: &LoadedExecutable, buffers: &[Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
    compiled.execute_with(&buffers.iter().collect::<Vec<_>>(), options)
}

/// Returns options that donate only the arguments that the module requires to be donated.
pub fn keeping(compiled: &LoadedExecutable) -> ExecuteOptions {
    ExecuteOptions { donate: required(compiled).into(), ..ExecuteOptions::default() }
}

/// Returns options that donate all arguments.
pub fn donating(compiled: &LoadedExecutable) -> ExecuteOptions {
    ExecuteOptions { donate: (0..compiled.signature().arguments().len()).collect(), ..ExecuteOptions::default() }
}

/// Returns the indices of the arguments that must be donated.
pub fn required(compiled: &LoadedExecutable) -> Vec<usize> {
    compiled.signature().required_donations().collect()
}

/// Reads the results to the host, as a flat tuple.
pub fn read(results: &[Buffer]) -> Result<Literal> {
    Ok(Literal::tuple(results.iter().map(Buffer::to_literal).collect::<Result<_>>()?))
}

/// Runs the program once with fresh arguments.
pub fn run(compiled: &LoadedExecutable, arguments: &[Literal], options: &ExecuteOptions) -> Result<Literal> {
    read(&launch(compiled, &buffers(compiled, arguments)?, options)?)
}

/// Returns the element type of a shape; for a tuple, the type of its first array.
pub fn main_type(shape: &xla_hlo::Shape) -> ElementType {
    let first = || shape.leaves().into_iter().find_map(|(_, leaf)| leaf.element_type());
    shape.element_type().or_else(first).unwrap_or(ElementType::Pred)
}
