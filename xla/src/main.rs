//! The `xla` command: run, time, look at and convert machine-learning programs.

use std::process::ExitCode;

use xla::service::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    xla::command::main()
}
