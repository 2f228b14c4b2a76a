//! `cargo xtask ci`: everything a change must pass, quickest answers first.

use std::time::Instant;

use anyhow::{Context, Result};
use pico_args::Arguments;

use crate::shell::{cargo, run as run_program};
use crate::{
    book, corpus, downstream, examples, finish, gpu_report, packages, ptxas, simulated_gpu, test, test_backend, tidy,
    wheel,
};

pub const HELP: &str = "\
Formatting, tidy, clippy and rustdoc without warnings, all tests, the book, the
benchmark programs as machine code for GPUs with estimates of it (where ptxas can be had), code for other processors and on emulated ones, applications
around compiled programs, kernels on a simulated GPU, the bundle for machines with a GPU, the JAX plugin as a wheel that trains a model,
and the corpus on every platform. Stops at the first step that fails. Programs are built for release, or in the Cargo profile that the
variable XTASK_PROFILE names.

  --from STEP     only this step and those after it, such as rustdoc or \"simulated gpu\"
  --without-kit   leaves the conformance kit of the template out of the tests, for a caller that runs it on a copy of the template
";

/// Tests that `--without-kit` leaves out.
const KIT: &str = "conformance";
/// Test of the tidy step, which has run before the tests.
const TIDY: &str = "tests::the_repository_is_tidy";

/// Parts of the run that the command line decides.
struct Scope {
    /// Names of tests that the step `test` skips.
    skipped: &'static [&'static str],
}

/// Name and work of a step.
type Step = (&'static str, fn(&Scope) -> Result<()>);

const STEPS: &[Step] = &[
    ("setup", |_| setup()),
    ("format", |_| run_program(cargo(&["fmt", "--all", "--check"]))),
    ("tidy", |_| tidy::check()),
    ("clippy", |_| clippy()),
    ("test", |scope| test::all(None, scope.skipped)),
    ("rustdoc", |_| rustdoc()),
    ("book", |_| book::build()),
    ("downstream", |_| downstream::check()),
    ("other processors", |_| test_backend::other_processors()),
    ("cross", |_| test::cross_if_possible()),
    ("examples", |_| examples::check()),
    ("simulated gpu", |_| simulated_gpu::check(&test_backend::tests_command("gpu")?)),
    ("ptxas", |_| ptxas::quick_if_possible()),
    ("gpu bundle", |_| gpu_report::check()),
    ("wheel", |_| wheel::check()),
    ("corpus", |_| corpus::own(&corpus::Selection::default())),
];

pub fn run(mut args: Arguments) -> Result<()> {
    let from: Option<String> = args.opt_value_from_str("--from")?;
    let skipped: &[&str] = if args.contains("--without-kit") { &[TIDY, KIT] } else { &[TIDY] };
    finish(args)?;
    let mut times = Vec::new();
    for (name, step) in steps_from(from.as_deref())? {
        let start = Instant::now();
        step(&Scope { skipped }).with_context(|| format!("ci step '{name}'"))?;
        times.push(format!("{name} {:.0} s", start.elapsed().as_secs_f64()));
    }
    println!("\nci: all passed ({})", times.join(", "));
    Ok(())
}

/// Installs the packages of the build, and starts to install packages of later steps.
fn setup() -> Result<()> {
    packages::ensure()?;
    packages::start_ensure_cross();
    Ok(())
}

/// Returns all steps, or the step of a name and those after it.
fn steps_from(name: Option<&str>) -> Result<&'static [Step]> {
    let Some(name) = name else { return Ok(STEPS) };
    let names = || STEPS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let start = STEPS.iter().position(|(step, _)| *step == name);
    Ok(&STEPS[start.with_context(|| format!("there is no step '{name}'; steps are {}", names()))?..])
}

fn clippy() -> Result<()> {
    run_program(cargo(&[
        "clippy",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
        "--",
        "--deny",
        "warnings",
    ]))?;
    // The build that runs programs for GPUs without LLVM.
    run_program(cargo(&[
        "clippy",
        "--package",
        "backend-gpu-nvptx",
        "--no-default-features",
        "--",
        "--deny",
        "warnings",
    ]))
}

fn rustdoc() -> Result<()> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "--deny warnings");
    run_program(command)
}
