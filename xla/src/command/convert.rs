//! `xla convert`: converts a module to another format.

use std::path::PathBuf;

use super::failure::Outcome;
use super::form::Form;
use super::output;
use super::program::ProgramArg;

const EXAMPLES: &str = "\
Examples:
  xla convert module.hlo --to hlo                 parse, verify, print in canonical form
  xla convert - --to hlo -o clean.hlo < in.hlo    from standard input to a file
  xla convert module.hlo --to pb -o module.hlo.pb serialise for XLA
  xla convert module.hlo --to html -o module.html a page for a browser
  xla convert module.hlo --to dot | dot -Tsvg     an image by Graphviz

The module after passes: xla opt module.hlo --to html -o module.html.";

/// Convert a module to another format
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    program: ProgramArg,
    /// Output format
    #[arg(long, value_name = "FORM")]
    to: Form,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Converts the module.
pub fn run(args: &Args) -> Outcome {
    let (_, module) = args.program.module()?;
    Ok(output::write(args.output.as_deref(), &args.to.write(&module)?)?)
}
