//! The subcommands, a file each.

mod check;
mod conformance;
mod coverage;
#[cfg(feature = "cpu")]
mod cross;
mod fuzz;
mod operations;
mod target;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status of a subcommand: 0 if all is well, 1 if something was found.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

#[derive(Debug, Parser)]
#[command(name = "xla-tests", about = "Random programs, and capabilities of each platform")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compares random programs: evaluator, passes, platform.
    Fuzz(fuzz::Arguments),
    /// Checks program files as `fuzz` keeps them.
    Check(check::Arguments),
    /// Tries everything that a backend must do, in levels.
    Conformance(conformance::Arguments),
    /// Tries each operation on each element type: native, by the host, refused, wrong.
    Coverage(coverage::Arguments),
    /// Runs programs that were compiled ahead of time on emulated processors.
    #[cfg(feature = "cpu")]
    Cross(cross::Arguments),
    /// Writes the page of the book that lists every operation.
    Operations(operations::Arguments),
    /// Checks requests from standard input, line by line; `fuzz` starts these.
    #[command(hide = true)]
    Worker(check::Platform),
}

pub fn run(arguments: Arguments) -> Outcome {
    match arguments.command {
        Command::Fuzz(arguments) => fuzz::run(arguments),
        Command::Conformance(arguments) => conformance::run(arguments),
        Command::Coverage(arguments) => coverage::run(arguments),
        #[cfg(feature = "cpu")]
        Command::Cross(arguments) => cross::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Operations(arguments) => operations::run(arguments),
        Command::Worker(platform) => check::worker(platform),
    }
}
