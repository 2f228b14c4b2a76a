//! The `xla` command: run, time, look at and convert machine-learning programs.

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
