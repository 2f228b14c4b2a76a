//! `cargo xtask mutants`: changes of the compiler that no test notices.
//!
//! One build holds all mutants: each is a branch of the sources that an environment variable chooses. So a mutant costs
//! the run of the tests that reach it, and no build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mutants::Mutant;
use pico_args::Arguments;

mod build;
mod list;
mod record;
mod report;
mod run;

use build::{Tree, has_cargo_mutants};
use list::Choice;
use report::{Settled, report, write_missed, write_unreached};
use run::{Program, Tests};

use crate::{finish, packages};

pub const HELP: &str = "\
Changes one operator, condition or result of the compiler at a time, and runs the tests that reach the change: a mutant that
passes them survives. The files are named in .cargo/mutants.toml, and so are mutants that change nothing, with the reason.
Needs cargo-mutants, which lists the mutants: `cargo install cargo-mutants`. All mutants are in one build; a mutant runs the
tests of its crate, and then, if it survives them, the tests of the backends and of the whole compiler, the conformance suite included.

  cargo xtask mutants                    the sample of the day
  cargo xtask mutants --sample 200       a larger one
  cargo xtask mutants --file xla-passes/src/buffers --all

  --sample N    number of mutants (default 100)
  --all         all of them
  --number N    number of the sample (default: days since 1970); consecutive numbers cover all mutants
  --file PATH   only mutants of this file or folder; several are possible
  --quick       only the tests of the mutants' crates
  --wide        only the tests of the backends and of the whole compiler, such as after a run with --quick
  --seconds N   time of tests for a mutant (default 30): one that takes more of them to be noticed counts as a survivor,
                and tests that take longer are left out
  --limit P     fail if more than P percent survive (default 5)

target/mutants has the results: missed.txt lists the survivors, and unreached.txt all mutants of the chosen files that no test of
their crates reaches, whether in the sample or not. Mutants that caught.txt and rejected.txt list are not tried again
while their file has the same text. The sources are copied, not changed in place. One build holds all mutants of the chosen files,
so other samples of them need no other build; tests are run again without a mutant only when their program or data change.
";

/// Packages whose tests see the results of compiled programs.
const WIDE: [&str; 3] = ["backend-cpu", "backend-gpu-nvptx", "xla-tests"];

pub fn run(mut args: Arguments) -> Result<()> {
    let choice = Choice {
        sample: args.opt_value_from_str("--sample")?.unwrap_or(100).max(1),
        all: args.contains("--all"),
        number: args.opt_value_from_str("--number")?,
        files: args.values_from_str("--file")?,
    };
    let (quick, wide) = (args.contains("--quick"), args.contains("--wide"));
    let time = Duration::from_secs(args.opt_value_from_str("--seconds")?.unwrap_or(30));
    let limit = args.opt_value_from_str("--limit")?.unwrap_or(5.0);
    finish(args)?;
    if quick && wide {
        bail!("--quick and --wide leave no tests to run; pass one of them, or none for both stages");
    }
    packages::ensure()?;
    if !has_cargo_mutants() {
        bail!("cargo-mutants is not installed: `cargo install cargo-mutants`");
    }
    let folder = crate::build::target()?.join("mutants");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mutants = list::list(&choice)?;
    let tree = Tree::build(&folder, &mutants)?;
    println!(
        "rustc rejects {} mutants; {} are in constants",
        tree.rejected,
        mutants.len() - tree.made.len() - tree.rejected
    );
    let built: Vec<&Mutant> = mutants.iter().filter(|mutant| tree.made.contains(&mutant.id)).collect();
    let made: Vec<&Mutant> = built.iter().copied().filter(|mutant| mutant.is_chosen).collect();
    let mut survivors = made.clone();
    if !wide {
        let programs = tree.tests(&made.iter().map(|mutant| mutant.package()).collect())?;
        let tests = Tests::record(&tree.root, &folder, programs, time)?;
        write_unreached(&folder, &tests.unreached(&built))?;
        survivors = survive(&folder, tests, &survivors, time)?;
    }
    if !quick && !survivors.is_empty() {
        for programs in by_folder(tree.tests(&BTreeSet::from(WIDE))?) {
            let tests = Tests::record(&tree.root, &folder, programs, time)?;
            survivors = survive(&folder, tests, &survivors, time)?;
        }
    }
    report(&folder, &made, &survivors, limit)
}

/// Groups programs of tests by the folder of their package: small tests of backends in front of the large ones of the
/// whole compiler, in `tests`.
fn by_folder(programs: Vec<Program>) -> Vec<Vec<Program>> {
    let mut folders: BTreeMap<PathBuf, Vec<Program>> = BTreeMap::new();
    programs.into_iter().for_each(|program| folders.entry(program.folder.clone()).or_default().push(program));
    folders.into_values().collect()
}

/// Returns the mutants that the tests do not notice in a time.
fn survive<'m>(folder: &Path, mut tests: Tests, mutants: &[&'m Mutant], time: Duration) -> Result<Vec<&'m Mutant>> {
    let mut caught = Settled::caught(folder);
    let mut survivors = Vec::new();
    for (done, mutant) in mutants.iter().enumerate() {
        if done % 100 == 0 {
            println!("{done} of {} mutants; {} survive", mutants.len(), survivors.len());
        }
        if caught.has(mutant)? {
            continue;
        }
        if tests.notice(mutant.id, time)? {
            caught.add(mutant)?;
        } else {
            survivors.push(*mutant);
            write_missed(folder, &survivors)?;
        }
    }
    Ok(survivors)
}
