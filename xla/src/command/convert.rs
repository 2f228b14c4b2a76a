//! `xla convert`: converts a module to another format.

use std::path::PathBuf;

use super::failure::Outcome;
use super::form::Form;
use super::output;
use super::program::ProgramArg;

const EXAMPLES: &str = "\
Examples:
  xla convert module.hlo --to hlo                 parse, verify, print in the one form that the printer has
  xla convert - --to hlo -o clean.hlo < in.hlo    from standard input to a file
  xla convert module.hlo --to pb -o module.hlo.pb serialise, as XLA reads it
  xla convert module.hlo --to html -o module.html a page to look at in a browser
  xla convert module.hlo --to dot | dot -Tsvg     a picture by Graphviz

The same module as passes leave it: xla opt module.hlo --to html -o module.html.";

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

/// Converts the module.
pub fn run(args: &Args) -> Outcome {
    let (_, module) = args.program.module()?;
    Ok(output::write(args.output.as_deref(), &args.to.write(&module)?)?)
}
