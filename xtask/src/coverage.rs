//! `cargo xtask coverage`: operation by element type by platform.

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{program, run as run_program};
use crate::{build, finish, packages};

pub const HELP: &str = "\
Compiles and runs a tiny program for each operation and element type on each platform and compares it with the evaluator.
Prints what is native, what the host evaluates, what is refused and what is missing, and writes target/coverage.html.

  --platform NAME  only this platform
  --filter TEXT    only operations whose name contains TEXT
";

pub fn run(mut args: Arguments) -> Result<()> {
    let mut words = vec!["coverage".to_owned(), "--html".to_owned(), "target/coverage.html".to_owned()];
    for name in ["--platform", "--filter"] {
        if let Some(value) = args.opt_value_from_str::<_, String>(name)? {
            words.extend([name.to_owned(), value]);
        }
    }
    finish(args)?;
    packages::ensure()?;
    run_program(program(build::xla_tests()?, &words))
}
