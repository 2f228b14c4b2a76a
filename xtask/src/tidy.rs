//! `cargo xtask tidy`: prints the findings of the crate `tidy`.

use anyhow::{Result, bail};
use pico_args::Arguments;

use crate::shell::root;

pub const HELP: &str = "\
Each finding is `FILE:LINE: rule: what to do`. `--circles` prints the circles of imports of each
crate instead. The rules:

  module-doc      the first line of a Rust file is a `//!` sentence
  size            600 lines a file at most (tables and generated code exempt by name); 80 lines a function, unless most of
                  them are arms of a match or text; 120 columns in code and comments, only strings may be longer
  circle          no files of a crate that import each other
  reference       a file that a comment or a document names is there
  word            no word in names that gave way to the field's
  doc-begin       documentation begins with a verb or a noun, not with What, How, Where, That of, The same
  prose           phrasings that are hard to read (tests/tidy/src/prose/markers.rs) stay within xtask/prose-budget.txt
  public-docs     the libraries that others depend on ask the compiler for missing documentation
  unsafe          only in the files of xtask/unsafe-files.txt; foreign blocks under a comment with `SAFETY:`
                  (clippy checks other uses)
  unit-test       none in a library with `test = false`, where it would not run
  machine-path    no path of a developer's machine in any committed text
  manifest        dependency versions and lints are in the root Cargo.toml alone; dependencies between the crates have one
                  direction, and LLVM is only where it belongs
";

pub fn run(mut args: Arguments) -> Result<()> {
    let lists_circles = args.contains("--circles");
    crate::finish(args)?;
    if !lists_circles {
        return check();
    }
    print!("{}", tidy::circles(&root())?);
    Ok(())
}

/// Prints findings and fails if a rule is broken.
pub fn check() -> Result<()> {
    let findings = tidy::findings(&root())?;
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        bail!("tidy: {} rules broken; `cargo xtask tidy --help` lists the rules", findings.len());
    }
    println!("tidy: nothing to mend");
    Ok(())
}
