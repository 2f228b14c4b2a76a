//! The `xla` command: run, time, look at and convert machine-learning programs.

use std::process::ExitCode;

use xla::command::out_of_memory::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    xla::command::main()
}
