//! `xla run`: compiles a program, runs it once and outputs its results.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use xla::hlo::{Error, Literal, Module};
use xla::npz;
use xla::service::{ExecuteOptions, Signature};
use xla::{Client, LoadedExecutable};

use super::expect::ExpectArgs;
use super::failure::Outcome;
use super::inputs::InputArgs;
use super::output;
use super::program::{Runnable, RunnableArg, Source};
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
    /// Number of devices
    #[arg(long, value_name = "N", default_value = "1")]
    devices: NonZeroUsize,
}

/// Runs the program.
pub fn run(session: &Session, args: &Args) -> Outcome {
    let (signature, outputs) = match args.program.read()? {
        Runnable::Module(source) => compile_and_run(session, args, source)?,
        Runnable::Executable(stored) => {
            let client = session.client_for(&session.registry(), &args.platform, &stored)?;
            let executable = stored.load(&client, &session.compile_options())?;
            check_devices(executable.module(), args.devices.get())?;
            let signature = signature::of_module(executable.module())?;
            let literals = inputs_of(args, Some(stored.path()), &signature)?;
            drop(stored);
            let outputs = execute(&executable, literals)?;
            (signature, outputs)
        }
    };
    if let Some(path) = &args.output {
        npz::write(path, &outputs)?;
    }
    match args.expect.check(&signature, &outputs)? {
        Some(agreement) => output::print(&format!("{agreement}\n"))?,
        None if args.output.is_none() => output::print(&listing(&outputs))?,
        None => {}
    }
    Ok(())
}

fn compile_and_run(session: &Session, args: &Args, mut source: Source) -> Outcome<(Signature, Vec<Literal>)> {
    let registry = session.registry();
    let platform = session.platform(&registry, &args.platform)?;
    args.inputs.give_extents(source.shapes_mut())?;
    let module = source.verified()?;
    check_devices(&module, args.devices.get())?;
    let signature = signature::of_module(&module)?;
    let literals = inputs_of(args, source.path(), &signature)?;
    drop(source);
    let client = Client::new(&registry, platform.name())?;
    let executable = client.compile(&module, &session.compile_options())?;
    drop(module);
    Ok((signature, execute(&executable, literals)?))
}

fn inputs_of(args: &Args, program: Option<&Path>, signature: &Signature) -> Outcome<Vec<Literal>> {
    let mut given = args.inputs.open(program, signature)?;
    (0..signature.arguments().len()).map(|i| given.literal(signature, i)).collect()
}

/// Returns an error if the option or the module's header requests several devices, which are not supported.
pub fn check_devices(module: &Module, asked: usize) -> Outcome {
    let attributes = module.attributes();
    let (replicas, partitions) = (attributes.replica_count.max(1), attributes.num_partitions.max(1));
    if asked > 1 || replicas.saturating_mul(partitions) > 1 {
        return Err(Error::unimplemented(format!(
            "programs for more than one device cannot be run yet ({replicas} replicas and {partitions} partitions in the \
             module's header, --devices {asked})"
        ))
        .into());
    }
    Ok(())
}

fn execute(executable: &LoadedExecutable, literals: Vec<Literal>) -> Outcome<Vec<Literal>> {
    let buffers = literals.into_iter().enumerate().map(|(i, literal)| executable.argument_buffer(i, &literal));
    let buffers = buffers.collect::<xla::Result<Vec<_>>>()?;
    // The inputs are not used again, and some programs require donated inputs.
    let options = ExecuteOptions { donate: (0..buffers.len()).collect(), ..ExecuteOptions::default() };
    let outputs = executable.execute_with(&buffers.iter().collect::<Vec<_>>(), &options)?;
    Ok(outputs.iter().map(|buffer| buffer.to_literal()).collect::<xla::Result<_>>()?)
}

fn listing(outputs: &[Literal]) -> String {
    outputs.iter().enumerate().map(|(i, literal)| format!("out{i}: {}\n", output::show(literal))).collect()
}
