//! `cargo xtask test`: every test of the workspace.

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{cargo, output, program, run as run_program};
use crate::{build, emulated, finish, packages};

pub const HELP: &str = "\
Sets the machine up, then runs all tests, through cargo-nextest when it is there, and the documentation's examples.

  --filter TEXT    only tests whose name contains TEXT, and no documentation examples

  --cross [TARGET...]    instead: compile the corpus ahead of time for other processors and run it on emulated ones, all
                         unless some are named (aarch64, riscv64, riscv64-v, s390x, wasm32, ...); installs what that needs
  --suite NAMES          with --cross: these suites of the corpus [default: models]
  --gnu-ld               with --cross: also link a program for each of a dozen triples with GNU ld

  --jit [CPU...]   instead: build the compiler itself for AArch64, and run there, emulated, what it compiles for the machine
                   that it is on: levels 0 to 3 of `cargo xtask test-backend cpu`, and the models. CPUs: aarch64 (the
                   baseline, if none is named), cortex-a53, neoverse-n1, a64fx (SVE), neoverse-v2 (SVE2). On Debian; fetches LLVM
                   for AArch64 (90 MB) into target/jit-aarch64; takes minutes for each CPU beside the build
  --level N[,N], --corpus NAMES, --filter TEXT, --jobs N, --quick
                   with --jit: as with `cargo xtask test-backend`; suites of the corpus, which is level 4

For one crate: `cargo nextest run -p CRATE`, or `cargo test -p CRATE`.
";

pub fn run(mut args: Arguments) -> Result<()> {
    if args.contains("--cross") {
        return cross(args);
    }
    if args.contains("--jit") {
        return emulated::run(args);
    }
    let filter: Option<String> = args.opt_value_from_str("--filter")?;
    finish(args)?;
    all(filter.as_deref(), &[])
}

/// Runs programs that were compiled ahead of time, on emulated processors.
fn cross(mut args: Arguments) -> Result<()> {
    let mut words = vec!["cross".to_owned()];
    if let Some(suites) = args.opt_value_from_str::<_, String>("--suite")? {
        words.extend(["--suite".to_owned(), suites]);
    }
    words.extend(args.finish().iter().map(|word| word.to_string_lossy().into_owned()));
    packages::ensure()?;
    packages::ensure_cross()?;
    if words.iter().any(|word| word == "--gnu-ld") {
        packages::ensure_gnu_linkers()?;
    }
    run_program(program(build::xla_tests()?, &words))
}

/// Models on emulated processors of five kinds, and links with GNU ld, where the tools can be had.
pub fn cross_if_possible() -> Result<()> {
    if let Err(error) = packages::ensure_cross() {
        println!("left out, tools are missing: {error:#}");
        return Ok(());
    }
    let mut words = vec!["cross", "x86_64-levels-nehalem", "aarch64", "riscv64-v", "s390x", "wasm32"];
    match packages::ensure_gnu_linkers() {
        Ok(()) => words.push("--gnu-ld"),
        Err(error) => println!("links with GNU ld are left out: {error:#}"),
    }
    run_program(program(build::xla_tests()?, &words))
}

/// Runs the tests whose name contains `filter`, or all tests and examples, except those with a name in `skipped`.
pub fn all(filter: Option<&str>, skipped: &[&str]) -> Result<()> {
    packages::ensure()?;
    let has_nextest = output(cargo(&["nextest", "--version"])).is_some();
    let mut command = match has_nextest {
        true => cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]),
        false => cargo(&["test", "--workspace", "--all-targets", "--no-fail-fast"]),
    };
    command.args(filter);
    if has_nextest {
        let others: Vec<String> = skipped.iter().map(|name| format!("not test(={name})")).collect();
        command.args(["--filterset", &[&["all()".to_owned()], &others[..]].concat().join(" and ")]);
    } else if !skipped.is_empty() {
        command.args(["--", "--exact"]).args(skipped.iter().flat_map(|name| ["--skip", name]));
    }
    run_program(command)?;
    match filter {
        Some(_) => Ok(()),
        None => run_program(cargo(&["test", "--workspace", "--doc"])),
    }
}
