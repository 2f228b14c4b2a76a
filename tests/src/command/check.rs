//! `xla-tests check`: checks program files that `fuzz` keeps; and the worker that does so on request.

use std::path::PathBuf;
use std::process::ExitCode;

use xla_tests::worker::{Checker, Reply, Request};

use super::Outcome;
use super::target::TargetArguments;

#[derive(Debug, clap::Args)]
pub struct Platform {
    /// Platform to compare with the evaluator.
    #[arg(long, default_value = "cpu")]
    pub platform: String,
    /// Compare each pass in isolation, run until it changes nothing more, instead of a platform.
    #[arg(long)]
    pub each_pass: bool,
    #[command(flatten)]
    pub target: TargetArguments,
}

impl Platform {
    fn checker(&self) -> xla::Result<Checker> {
        if self.each_pass {
            return Ok(Checker::of_passes());
        }
        let checker = Checker::new(&self.target.registry(&self.platform)?, &self.platform)?;
        Ok(if self.target.sanitize { checker.compiling_twice() } else { checker })
    }
}

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    platform: Platform,
    /// Files of programs with their arguments: see the documentation of `xla_tests::program`.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Checks each file in this process, in all modes.
pub fn run(arguments: Arguments) -> Outcome {
    let checker = arguments.platform.checker()?;
    let mut code = ExitCode::SUCCESS;
    for path in arguments.files {
        let name = path.display().to_string();
        match checker.answer(&Request::File(path)) {
            Reply::Agree(instructions) => println!("{name}: {instructions} instructions, all agree"),
            Reply::Differ(failure) => {
                println!("{name}: {:?}: {}", failure.kind, failure.message);
                code = ExitCode::FAILURE;
            }
            Reply::Invalid(message) => return Err(format!("{name}: {message}").into()),
        }
    }
    Ok(code)
}

/// Answers requests until standard input ends.
pub fn worker(platform: Platform) -> Outcome {
    platform.checker()?.serve(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
