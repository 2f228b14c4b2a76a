//! `xla convert`: a module in another form.

use std::path::PathBuf;

use clap::ValueEnum;
use xla::Error;
use xla::hlo::proto;

use super::failure::Outcome;
use super::output;
use super::program::ProgramArg;

const EXAMPLES: &str = "\
Examples:
  xla convert module.hlo --to hlo                 parse, verify, print in the one form that the printer has
  xla convert - --to hlo -o clean.hlo < in.hlo    from standard input to a file
  xla convert module.hlo --to pb -o module.hlo.pb serialise, as XLA reads it";

/// Write a module in another form
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    program: ProgramArg,
    /// The form to write
    #[arg(long, value_name = "FORM")]
    to: Form,
    /// The file to write; else standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// HLO text
    Hlo,
    /// Serialised HloModuleProto
    Pb,
    /// A graph for Graphviz
    Dot,
    /// A page with the graph
    Html,
}

/// Converts the module.
pub fn run(args: &Args) -> Outcome {
    let (_, module) = args.program.module()?;
    let output = args.output.as_deref();
    let name = match args.to {
        Form::Hlo => return Ok(output::write(output, module.to_string().as_bytes())?),
        Form::Pb => return Ok(output::write(output, &proto::serialize_module(&module)?)?),
        Form::Dot => "Graphviz graphs",
        Form::Html => "HTML pages",
    };
    Err(Error::unimplemented(format!("{name} cannot be written yet; --to hlo and --to pb can")).into())
}
