//! Subcommands, one file each.

mod check;
mod conformance;
mod coverage;
#[cfg(feature = "cpu")]
mod cross;
mod devices;
mod fuzz;
mod launches;
mod operations;
mod target;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status of a subcommand: 0 for success, 1 if failures were found.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

#[derive(Debug, Parser)]
#[command(name = "xla-tests", about = "Random programs, and capabilities of each platform")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare random programs: evaluator, passes, platform.
    Fuzz(fuzz::Arguments),
    /// Check program files that `fuzz` has kept.
    Check(check::Arguments),
    /// Test everything that a backend must do, in levels.
    Conformance(conformance::Arguments),
    /// Test each operation with each element type: native, by the host, refused, wrong.
    Coverage(coverage::Arguments),
    /// Run programs that were compiled ahead of time on emulated processors.
    #[cfg(feature = "cpu")]
    Cross(cross::Arguments),
    /// Launch programs over overlapping sets of devices from several threads; in some launches a device fails.
    Launches(launches::Arguments),
    /// Write the book's page of all operations.
    Operations(operations::Arguments),
    /// Check requests from standard input, line by line; `fuzz` starts such processes.
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
        Command::Launches(arguments) => launches::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Operations(arguments) => operations::run(arguments),
        Command::Worker(platform) => check::worker(platform),
    }
}
