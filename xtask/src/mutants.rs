//! `cargo xtask mutants`: changes of the compiler that no test notices.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{cargo, output, root, run as run_program};
use crate::{finish, packages};

pub const HELP: &str = "\
Changes one operator, condition or result of the compiler at a time, and runs the tests: a mutant that passes them survives. The files
are named in .cargo/mutants.toml, and so are mutants that change nothing, with the reason. Needs cargo-mutants:
`cargo install cargo-mutants`. A mutant takes about a minute, its crate's tests first; those that survive them meet the
tests of the backends and of the whole compiler, which take longer.

  cargo xtask mutants                    the sample of the day
  cargo xtask mutants --sample 200       a larger one
  cargo xtask mutants --file '**/buffers/**/*.rs' --all

  --sample N    number of mutants (default 20)
  --all         all of them: hours
  --number N    number of the sample (default: days since 1970); consecutive numbers cover all mutants
  --file GLOB   only mutants of these files
  --quick       only the tests of each mutant's crate
  --limit P     fail if more than P percent survive (default 5)

Results are in target/mutants/mutants.out: missed.txt has the survivors. The sources are copied, not changed in place.
";

/// Packages whose tests see the results of compiled programs.
const WIDE: &str = "backend-cpu,backend-gpu-nvptx,xla-tests";

struct Options {
    sample: usize,
    all: bool,
    number: Option<usize>,
    files: Option<String>,
    quick: bool,
    limit: f64,
}

pub fn run(mut args: Arguments) -> Result<()> {
    let options = Options {
        sample: args.opt_value_from_str("--sample")?.unwrap_or(20).max(1),
        all: args.contains("--all"),
        number: args.opt_value_from_str("--number")?,
        files: args.opt_value_from_str("--file")?,
        quick: args.contains("--quick"),
        limit: args.opt_value_from_str("--limit")?.unwrap_or(5.0),
    };
    finish(args)?;
    packages::ensure()?;
    if output(cargo(&["mutants", "--version"])).is_none() {
        bail!("cargo-mutants is not installed: `cargo install cargo-mutants`");
    }
    let mut chosen =
        vec!["--package".to_owned(), "xla-llvm".to_owned(), "--package".to_owned(), "xla-passes".to_owned()];
    chosen.extend(options.files.iter().flat_map(|files| ["--file".to_owned(), files.clone()]));
    if !options.all {
        chosen.extend(shard(&chosen, &options)?);
    }
    let folder = root().join("target/mutants");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // The mutants' own crates, then the survivors with everything.
    mutants(&folder, &chosen, &[])?;
    if !options.quick {
        mutants(&folder, &chosen, &["--iterate", "--baseline", "skip", "--timeout", "1200", "--test-package", WIDE])?;
    }
    report(&folder.join("mutants.out"), &options)
}

/// The part of all mutants that is the sample, as arguments: every n-th one.
fn shard(chosen: &[String], options: &Options) -> Result<Vec<String>> {
    let mut list = cargo(&["mutants", "--list"]);
    list.args(chosen);
    let count = output(list).context("`cargo mutants --list` failed")?.lines().count();
    let shards = (count / options.sample).max(1);
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400);
    let number = options.number.unwrap_or(days as usize) % shards;
    println!("{count} mutants; sample {number} of {shards}");
    Ok(["--sharding", "round-robin", "--shard", &format!("{number}/{shards}")].map(str::to_owned).to_vec())
}

/// Runs cargo-mutants; survivors are no error of it.
fn mutants(folder: &Path, chosen: &[String], more: &[&str]) -> Result<()> {
    let mut command = cargo(&["mutants", "--no-times", "--colors", "never"]);
    command.args(chosen).args(more).arg("--output").arg(folder);
    // The copies of the sources have other paths each time; their dependencies are built once.
    command.env("CARGO_TARGET_DIR", folder.join("target")).env("CARGO_PROFILE_DEV_DEBUG", "0");
    // 2: mutants survived; 3: some ran into the time limit.
    match run_program(command) {
        Err(error) if !folder.join("mutants.out/outcomes.json").exists() => Err(error),
        _ => Ok(()),
    }
}

/// Prints the share of survivors and their names. cargo-mutants keeps the caught ones of an earlier run in a list of
/// their own.
fn report(folder: &Path, options: &Options) -> Result<()> {
    let lines = |name: &str| -> Vec<String> {
        fs::read_to_string(folder.join(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let survivors = lines("missed.txt");
    let noticed: usize =
        ["caught.txt", "timeout.txt", "previously_caught.txt"].iter().map(|name| lines(name).len()).sum();
    let all = survivors.len() + noticed;
    if all == 0 {
        bail!("no mutant was built; see {}", folder.display());
    }
    let percent = 100.0 * survivors.len() as f64 / all as f64;
    println!("\n{} of {all} mutants survive, {percent:.1} %:", survivors.len());
    survivors.iter().for_each(|name| println!("  {name}"));
    if percent > options.limit {
        bail!(
            "more than {} % survive: add tests, or name mutants that change nothing in .cargo/mutants.toml",
            options.limit
        );
    }
    Ok(())
}
