//! `xla run`: compiles a program, runs it once and outputs its results.

use std::path::{Path, PathBuf};

use xla::hlo::Literal;
use xla::service::{ArgumentLeaf, ExecuteOptions};
use xla::{Client, LoadedExecutable};

use super::devices::{self, Arguments, DevicesArg};
use super::expect::ExpectArgs;
use super::failure::Outcome;
use super::inputs::InputArgs;
use super::output;
use super::outputs::Outputs;
use super::program::{Runnable, RunnableArg, Source, Stored};
use super::session::{PlatformArg, Session};
use super::signature;

const EXAMPLES: &str = "\
Examples:
  xla run module.hlo --inputs-seed 0
      Compile for this machine's CPU, run on generated inputs, print the outputs.
  xla run module.hlo --inputs in.npz --output out.npz
      in.npz holds arg0, arg1, ... as numpy.savez writes them; out.npz gets out0, out1, ...
  xla run module.hlo --inputs in.npz --expect expected.npz --rtol 1e-4 --atol 1e-5
      Compare the outputs with expected ones; report differences with exit code 1.
  jax-program | xla run - --platform interpreter --inputs-seed 7
      A program from standard input on the reference evaluator (slow, accurate).
  xla run dynamic.mlir --shapes arg0=f32[8,4] --inputs-seed 0
      A StableHLO program with dynamic dimensions (jax.export, torch.export); --inputs alone says the shapes, too.
  xla run --executable build/main.xlax --inputs-seed 0
      A program that `xla compile` wrote; nothing is compiled. Its machine code runs: take only files that you trust.
  xla run partitioned.hlo --devices 4 --inputs in.npz --output out.npz
      A program of 4 replicas or partitions. in.npz holds arg0.dev0, arg0.dev1, ...: the value, or the part of a global
      value, on each device; or arg0, arg1, ...: global values, which are split by their shardings, and values that all
      devices have. out.npz gets out0.dev0, out0.dev1, ...; --expect takes both kinds of names.

Element types that numpy lacks (bf16, f8..., s4, ...) are raw bytes, as ml_dtypes saves them: |V2 or |V1, one
element each. Inputs of floats narrower than 32 bits may also be float32.";

/// Compile a program and run it once, or run a compiled one
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    program: RunnableArg,
    #[command(flatten)]
    platform: PlatformArg,
    #[command(flatten)]
    inputs: InputArgs,
    /// Write the outputs out0, out1, ... to an .npz file (tuples flattened) instead of printing them
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    expect: ExpectArgs,
    #[command(flatten)]
    devices: DevicesArg,
}

/// Runs the program.
pub fn run(session: &Session, args: &Args) -> Outcome {
    let outputs = match args.program.read()? {
        Runnable::Module(source) => compile_and_run(session, args, source)?,
        Runnable::Executable(stored) => load_and_run(session, args, &stored)?,
    };
    if let Some(path) = &args.output {
        outputs.write(path)?;
    }
    match args.expect.check(&outputs)? {
        Some(agreement) => output::print(&format!("{agreement}\n"))?,
        None if args.output.is_none() => output::print(&outputs.listing())?,
        None => {}
    }
    Ok(())
}

fn compile_and_run(session: &Session, args: &Args, mut source: Source) -> Outcome<Outputs> {
    let registry = session.registry();
    let platform = session.platform(&registry, &args.platform)?;
    args.inputs.give_extents(source.shapes_mut())?;
    let module = devices::verified(&source)?;
    let count = args.devices.count(&module)?;
    if count > 1 {
        let client = devices::client(&registry, platform.name(), count)?;
        let executable = client.compile(&module, &session.compile_options())?;
        drop(module);
        return run_on_devices(args, source.path(), executable, count);
    }
    let signature = signature::of_module(&module)?;
    // Inputs that do not fit are reported before the compilation.
    let literals = literals(args, source.path(), signature.arguments())?;
    drop(source);
    let client = Client::new(&registry, platform.name())?;
    let executable = client.compile(&module, &session.compile_options())?;
    drop(module);
    Ok(Outputs { leaves: signature.results().to_vec(), devices: vec![execute(&executable, literals)?], program: None })
}

fn load_and_run(session: &Session, args: &Args, stored: &Stored) -> Outcome<Outputs> {
    let registry = session.registry();
    let client = session.client_for(&registry, &args.platform, stored)?;
    let executable = stored.load(&client, &session.compile_options())?;
    let count = args.devices.count(executable.module())?;
    if count > 1 {
        let client = devices::client(&registry, client.platform(), count)?;
        let executable = stored.load(&client, &session.compile_options())?;
        return run_on_devices(args, Some(stored.path()), executable, count);
    }
    let signature = signature::of_module(executable.module())?;
    let literals = literals(args, Some(stored.path()), signature.arguments())?;
    Ok(Outputs { leaves: signature.results().to_vec(), devices: vec![execute(&executable, literals)?], program: None })
}

/// Runs a program on its devices.
fn run_on_devices(args: &Args, path: Option<&Path>, executable: LoadedExecutable, count: usize) -> Outcome<Outputs> {
    let executable = devices::place(executable, count)?;
    let arguments = Arguments::open(&args.inputs, path, &executable)?;
    let results = devices::run_once(&executable, arguments)?;
    Ok(Outputs::of_devices(executable, results))
}

/// Returns the inputs of one device.
fn literals(args: &Args, program: Option<&Path>, arguments: &[ArgumentLeaf]) -> Outcome<Vec<Literal>> {
    let mut given = args.inputs.open(program, arguments)?;
    (0..arguments.len()).map(|i| given.literal(arguments, i)).collect()
}

fn execute(executable: &LoadedExecutable, literals: Vec<Literal>) -> Outcome<Vec<Literal>> {
    let buffers = literals.into_iter().enumerate().map(|(i, literal)| executable.argument_buffer(i, &literal));
    let buffers = buffers.collect::<xla::Result<Vec<_>>>()?;
    // The inputs are not used again, and some programs require donated inputs.
    let options = ExecuteOptions { donate: (0..buffers.len()).collect(), ..ExecuteOptions::default() };
    let outputs = executable.execute_with(&buffers.iter().collect::<Vec<_>>(), &options)?;
    Ok(outputs.iter().map(|buffer| buffer.to_literal()).collect::<xla::Result<_>>()?)
}
