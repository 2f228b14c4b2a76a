//! Launches programs on a platform in every way that they can be run.

use xla::{Buffer, Client, CompileOptions, ExecuteOptions, Literal, LoadedExecutable, Result, VerifiedModule};
use xla_hlo::ElementType;

/// Compiles with the usual options.
pub fn compile(client: &Client, module: &VerifiedModule) -> Result<LoadedExecutable> {
    client.compile(module, &CompileOptions::default())
}

/// One buffer for each array of the arguments.
pub fn buffers(compiled: &LoadedExecutable, arguments: &[Literal]) -> Result<Vec<Buffer>> {
    arguments.iter().enumerate().map(|(i, argument)| compiled.argument_buffer(i, argument)).collect()
}

/// Runs the program, which waits for nothing that need not be waited for.
pub fn launch(compiled: &LoadedExecutable, buffers: &[Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
    compiled.execute_with(&buffers.iter().collect::<Vec<_>>(), options)
}

/// Options that donate the arguments that the module requires to be donated, and no others.
pub fn keeping(compiled: &LoadedExecutable) -> ExecuteOptions {
    ExecuteOptions { donate: required(compiled).into(), ..ExecuteOptions::default() }
}

/// Options that donate everything.
pub fn donating(compiled: &LoadedExecutable) -> ExecuteOptions {
    ExecuteOptions { donate: (0..compiled.signature().arguments().len()).collect(), ..ExecuteOptions::default() }
}

/// Numbers of the arguments that must be donated.
pub fn required(compiled: &LoadedExecutable) -> Vec<usize> {
    compiled.signature().required_donations().collect()
}

/// The results on the host, as a flat tuple.
pub fn read(results: &[Buffer]) -> Result<Literal> {
    Ok(Literal::tuple(results.iter().map(Buffer::to_literal).collect::<Result<_>>()?))
}

/// Runs the program once with fresh arguments.
pub fn run(compiled: &LoadedExecutable, arguments: &[Literal], options: &ExecuteOptions) -> Result<Literal> {
    read(&launch(compiled, &buffers(compiled, arguments)?, options)?)
}

/// Element type of an instruction's shape; of a tuple, that of its first array.
pub fn main_type(shape: &xla_hlo::Shape) -> ElementType {
    let first = || shape.leaves().into_iter().find_map(|(_, leaf)| leaf.element_type());
    shape.element_type().or_else(first).unwrap_or(ElementType::Pred)
}
