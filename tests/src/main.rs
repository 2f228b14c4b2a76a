//! `xla-tests`: random programs, and the coverage of each platform. `cargo xtask fuzz` and `cargo xtask coverage` call
//! it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to the person who runs it")]

mod command;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    command::run(command::Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
