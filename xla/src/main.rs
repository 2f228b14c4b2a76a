//! The `xla` command: runs, benchmarks, inspects and converts machine-learning programs.

use std::process::ExitCode;

use xla::service::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    xla::command::main()
}
