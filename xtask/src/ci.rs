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

  --from STEP   only this step and those after it, such as rustdoc or \"simulated gpu\"
";

/// A step's name and its work.
type Step = (&'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("setup", packages::ensure),
    ("format", || run_program(cargo(&["fmt", "--all", "--check"]))),
    ("tidy", tidy::check),
    ("clippy", clippy),
    ("test", || test::all(None)),
    ("rustdoc", rustdoc),
    ("book", book::build),
    ("downstream", downstream::check),
    ("other processors", test_backend::other_processors),
    ("dirty memory", test_backend::dirty_memory),
    ("cross", test::cross_if_possible),
    ("examples", examples::check),
    ("simulated gpu", || simulated_gpu::check(&test_backend::tests_command("gpu")?)),
    ("ptxas", ptxas::quick_if_possible),
    ("gpu bundle", gpu_report::check),
    ("wheel", wheel::check),
    ("corpus", || corpus::own(&corpus::Selection::default())),
];

pub fn run(mut args: Arguments) -> Result<()> {
    let from: Option<String> = args.opt_value_from_str("--from")?;
    finish(args)?;
    let mut times = Vec::new();
    for (name, step) in steps_from(from.as_deref())? {
        let start = Instant::now();
        step().with_context(|| format!("ci step '{name}'"))?;
        times.push(format!("{name} {:.0} s", start.elapsed().as_secs_f64()));
    }
    println!("\nci: all passed ({})", times.join(", "));
    Ok(())
}

/// All steps, or that of a name and those after it.
fn steps_from(name: Option<&str>) -> Result<&'static [Step]> {
    let Some(name) = name else { return Ok(STEPS) };
    let names = || STEPS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let start = STEPS.iter().position(|(step, _)| *step == name);
    Ok(&STEPS[start.with_context(|| format!("there is no step '{name}'; steps are {}", names()))?..])
}

fn clippy() -> Result<()> {
    run_program(cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
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
