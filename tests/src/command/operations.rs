//! `operations`: writes the book's page of all operations.

use std::path::PathBuf;
use std::process::ExitCode;

use xla_tests::reference;

use super::Outcome;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// File to write.
    file: PathBuf,
    /// Do not write; fail if the file is out of date.
    #[arg(long)]
    check: bool,
}

pub fn run(arguments: Arguments) -> Outcome {
    let page = reference::page();
    if !arguments.check {
        std::fs::write(&arguments.file, page)?;
        return Ok(ExitCode::SUCCESS);
    }
    if std::fs::read_to_string(&arguments.file)? == page {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} is out of date: run `cargo xtask book`", arguments.file.display());
    Ok(ExitCode::FAILURE)
}
