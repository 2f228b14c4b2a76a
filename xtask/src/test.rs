//! `cargo xtask test`: every test of the workspace.

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{cargo, output, run as run_program};
use crate::{finish, packages};

pub const HELP: &str = "\
Sets the machine up, then runs all tests, through cargo-nextest when it is there, and the documentation's examples.

  --filter TEXT    only tests whose name contains TEXT, and no documentation examples

For one crate: `cargo nextest run -p CRATE`, or `cargo test -p CRATE`.
";

pub fn run(mut args: Arguments) -> Result<()> {
    let filter: Option<String> = args.opt_value_from_str("--filter")?;
    finish(args)?;
    all(filter.as_deref())
}

/// Runs the tests whose name contains `filter`, or all tests and examples.
pub fn all(filter: Option<&str>) -> Result<()> {
    packages::ensure()?;
    let mut words = match output(cargo(&["nextest", "--version"])) {
        Some(_) => vec!["nextest", "run", "--workspace", "--no-fail-fast"],
        None => vec!["test", "--workspace", "--all-targets", "--no-fail-fast"],
    };
    words.extend(filter);
    run_program(cargo(&words))?;
    match filter {
        Some(_) => Ok(()),
        None => run_program(cargo(&["test", "--workspace", "--doc"])),
    }
}
