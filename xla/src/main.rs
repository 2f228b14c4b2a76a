//! The `xla` command: run, time, look at and convert machine-learning programs.

use std::process::ExitCode;

fn main() -> ExitCode {
    xla::command::main()
}
