//! `xla-tests`: random programs, conformance, and coverage of each platform. `cargo xtask fuzz` and `cargo xtask
//! coverage` run it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to the person who runs it")]

mod command;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // For small installations one file is both commands, by two names, so that they share LLVM.
    if std::env::args_os().next().is_some_and(|name| Path::new(&name).file_stem().is_some_and(|stem| stem == "xla")) {
        return xla::command::main();
    }
    command::run(command::Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
